"""The eight chapters of `examples/book` print what Paddle 1.8.5 prints, from the seeds on."""

import re
from pathlib import Path

import numpy as np
import pytest

BOOK = Path(__file__).parents[1] / "examples" / "book"
NUMBER = re.compile(r"-?\d+\.\d+")  # words, tags and counts stay text: they must be the same
STEPS = {
    "c06_understand_sentiment": 20
}  # after more steps, rounding shows in the losses of the stacked LSTMs

# What real Paddle 1.8.5 printed for the same scripts on a CPU.
RECORDED = {
    "c01_fit_a_line": """
step 0: loss 514.664124
step 20: loss 25.367737
step 40: loss 5.856519
step 60: loss 1.809888
step 80: loss 0.739858
step 100: loss 0.447916
step 120: loss 0.365313
step 140: loss 0.340889
step 160: loss 0.333254
step 180: loss 0.330684
new houses: loss 0.317767
price 31.251, true one 30.328
price 20.094, true one 19.289
price 28.584, true one 28.371
""",
    "c02_recognize_digits": """
regression, step 0: loss 2.738540
regression, step 10: loss 1.343957
regression, step 20: loss 0.778054
regression, step 30: loss 0.504194
regression, step 40: loss 0.278553
regression, new pictures: loss 0.162096, accuracy 0.998
perceptron, step 0: loss 2.431320
perceptron, step 10: loss 0.993516
perceptron, step 20: loss 0.269630
perceptron, step 30: loss 0.062740
perceptron, step 40: loss 0.022454
perceptron, new pictures: loss 0.017032, accuracy 1.000
convolutions, step 0: loss 3.096224
convolutions, step 10: loss 2.374035
convolutions, step 20: loss 2.121827
convolutions, step 30: loss 2.156583
convolutions, step 40: loss 1.988457
convolutions, new pictures: loss 1.733458, accuracy 0.414
""",
    "c03_image_classification": """
step 0: rate 0.0200, loss 1.459695
step 4: rate 0.0200, loss 1.305948
step 8: rate 0.0200, loss 0.684522
step 12: rate 0.0200, loss 0.484624
step 16: rate 0.0200, loss 0.255652
step 20: rate 0.0100, loss 0.126874
step 24: rate 0.0100, loss 0.275781
step 28: rate 0.0100, loss 0.068645
step 32: rate 0.0020, loss 0.060335
step 36: rate 0.0020, loss 0.092647
new textures: loss 0.054963, accuracy 1.000
""",
    "c04_word2vec": """
step 0: loss 4.143411
step 20: loss 2.655662
step 40: loss 1.532589
step 60: loss 1.202903
step 80: loss 1.164364
step 100: loss 1.030384
step 120: loss 1.110831
step 140: loss 1.060790
step 160: loss 0.984633
step 180: loss 0.899119
new rows: loss 0.891330, right 0.707
cosine of neighbours 0.4386, of words far apart 0.1538
""",
    "c05_recommender_system": """
step 0: loss 9.889163
step 10: loss 1.780956
step 20: loss 2.109156
step 30: loss 1.597312
step 40: loss 2.121087
step 50: loss 1.849531
step 60: loss 1.645552
step 70: loss 1.937186
step 80: loss 1.570816
step 90: loss 1.516723
new ratings: loss 1.730956
user 12, film 51: 2.3911, true one 1.0
user 36, film 16: 2.6186, true one 2.0
user 38, film 23: 2.3621, true one 2.0
""",
    "c06_understand_sentiment": """
convolutions, step 0: loss 0.762141
convolutions, step 4: loss 0.572883
convolutions, step 8: loss 0.414405
convolutions, step 12: loss 0.475642
convolutions, step 16: loss 0.308478
convolutions, new reviews: loss 0.181024, accuracy 0.963
dynamic_rnn, step 0: loss 0.684800
dynamic_rnn, step 4: loss 0.656745
dynamic_rnn, step 8: loss 0.667545
dynamic_rnn, step 12: loss 0.683238
dynamic_rnn, step 16: loss 0.654440
dynamic_rnn, new reviews: loss 0.412865, accuracy 0.850
stacked_lstm, step 0: loss 0.689169
stacked_lstm, step 4: loss 0.645668
stacked_lstm, step 8: loss 0.606052
stacked_lstm, step 12: loss 0.551361
stacked_lstm, step 16: loss 0.513479
stacked_lstm, new reviews: loss 0.519555, accuracy 0.703
""",
    "c07_label_semantic_roles": """
step 0: loss 22.259176
step 5: loss 28.225628
step 10: loss 20.497917
step 15: loss 13.781460
step 20: loss 9.006893
step 25: loss 5.942116
step 30: loss 4.731899
step 35: loss 2.923447
step 40: loss 1.760839
step 45: loss 1.252328
new sentences: loss 1.133702, F1 0.940
tags [5, 5, 5, 0, 4, 2, 3, 5, 5], true ones [5, 5, 5, 0, 4, 2, 3, 5, 5]
""",
    "c08_machine_translation": """
step 0: loss 2.478268
step 6: loss 2.155642
step 12: loss 1.925475
step 18: loss 1.748177
step 24: loss 1.701387
step 30: loss 1.395266
step 36: loss 1.369558
step 42: loss 1.173265
step 48: loss 1.085567
step 54: loss 1.009873
[8, 11, 5] is
    [5, 6, 7, 1, 1, 1, 1, 1]
    [6, 5, 7, 1, 1, 1, 1, 1]
    [5, 6, 1, 1, 1, 1, 1, 1]
[7, 7] is
    [3, 3, 1, 1, 1, 1, 1, 1]
    [3, 3, 3, 1, 1, 1, 1, 1]
    [3, 1, 1, 1, 1, 1, 1, 1]
[2, 7, 9, 11, 6] is
    [3, 8, 9, 5, 10, 1, 1, 1]
    [3, 8, 9, 5, 1, 1, 1, 1]
    [8, 3, 9, 5, 10, 1, 1, 1]
[10, 4, 9, 6, 6, 6] is
    [2, 4, 10, 10, 10, 10, 1, 1]
    [2, 4, 10, 10, 10, 10, 10, 1]
    [2, 4, 10, 10, 10, 1, 1, 1]
""",
}


@pytest.mark.parametrize("chapter", sorted(path.stem for path in BOOK.glob("*.py")))
def test_prints_what_paddle_prints(python, chapter):
    done = python("-m", "fluidlite", BOOK / f"{chapter}.py", *([STEPS[chapter]] if chapter in STEPS else []))
    assert done.returncode == 0, done.stderr
    recorded = RECORDED[chapter].lstrip("\n")
    assert NUMBER.sub("#", done.stdout) == NUMBER.sub("#", recorded)
    found, wanted = (np.array(NUMBER.findall(text), "float64") for text in (done.stdout, recorded))
    np.testing.assert_allclose(found, wanted, rtol=2e-4)
    losses = [float(text) for text in re.findall(r"loss (\S+?),?\s", done.stdout)]
    assert losses[-1] < losses[0]  # of new samples, at the end
