"""Runs cases on real Paddle 1.8.5: `python real.py CASES RESULTS`, JSON lines in, JSON lines out.

For Paddle's interpreter (Python 3.8): imports nothing of this project. A case that kills the process is
noted as a crash when the script is started again with the same files; it goes on behind it.
"""

import base64
import json
import os
import sys

import numpy as np


def decode(value):
    if isinstance(value, dict):
        if set(value) == {"dtype", "shape", "data"}:
            raw = np.frombuffer(base64.b64decode(value["data"]), value["dtype"])
            return raw.reshape(value["shape"]).copy()
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return value


def encode(array):
    text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": text}


class Program:
    def __init__(self, fluid, case):
        self.fluid, self.feed = fluid, {}
        self.program = fluid.Program()
        block = self.program.global_block()
        self.inputs = {
            slot: [
                self.fed(f"{slot}_{k}", array, (case["lods"].get(slot) or [None] * len(arrays))[k])
                for k, array in enumerate(arrays)
            ]
            for slot, arrays in case["inputs"].items()
        }
        self.outputs = {
            slot: [block.create_var(name=f"{slot}_out_{k}") for k in range(count)]
            for slot, count in case["outputs"].items()
        }
        block.append_op(type=case["op"], inputs=self.inputs, outputs=self.outputs, attrs=case["attrs"])

    def fed(self, name, array, lod, declared=None):
        fluid = self.fluid
        tensor = fluid.LoDTensor()
        tensor.set(array, fluid.CPUPlace())
        if lod:
            tensor.set_lod(lod)
        self.feed[name] = tensor
        return self.program.global_block().create_var(
            name=name,
            shape=declared or array.shape,
            dtype=str(array.dtype),
            is_data=True,
            lod_level=len(lod or []),
            stop_gradient=array.dtype.kind != "f",
        )

    def run(self, names):
        fluid, block = self.fluid, self.program.global_block()
        for name in names:
            block.var(name).persistable = True  # what an operator leaves unset can be seen in the scope
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            fluid.Executor(fluid.CPUPlace()).run(self.program, feed=self.feed)
            result = {}
            for name in names:
                tensor = scope.find_var(name).get_tensor()
                result[name] = encode(np.array(tensor)) if tensor._is_initialized() else None
                if tensor.lod():
                    result[name + "@LOD"] = tensor.lod()
            return result


def compute(fluid, case):
    with fluid.unique_name.guard():
        program = Program(fluid, case)
    made = [var.name for slot in program.outputs for var in program.outputs[slot]]
    results = program.run(made)
    if not case["grads"]:
        return results
    try:
        with fluid.unique_name.guard():
            program = Program(fluid, case)
            with fluid.program_guard(program.program):
                targets, starts = [], []
                for slot, arrays in case["weights"].items():
                    lods = case["lods"][slot + "@GRAD"]
                    for var, array, lod in zip(program.outputs[slot], arrays, lods):  # noqa: B905 (Python 3.8)
                        targets.append(var)
                        # What only a run knows of a shape is -1 in both.
                        starts.append(program.fed(var.name + "_given", array, lod, var.shape))
                wanted = [var for slot in case["grads"] for var in program.inputs[slot]]
                for var in wanted:
                    var.stop_gradient = False
                fluid.gradients(targets, wanted, starts)
        block = program.program.global_block()
        names = [var.name + "@GRAD" for var in wanted if block.has_var(var.name + "@GRAD")]
        if names:
            results.update(program.run(names))
    except Exception as error:
        results["@GRAD"] = failure(error)
    return results


def failure(error):
    text = str(error)
    at = text.find("Error:")
    return {
        "error": type(error).__name__,
        "classes": [c.__name__ for c in type(error).__mro__],
        "text": text[at:] if at >= 0 else text[-400:],
    }


def main(cases, results):
    done = 0
    if os.path.exists(results):
        with open(results) as lines:
            done = sum(1 for _ in lines)
    began = results + ".began"
    if os.path.exists(began):
        with open(began) as last:
            if last.read().strip() == str(done):
                with open(results, "a") as out:
                    out.write(json.dumps({"crash": True}) + "\n")
                done += 1
    import paddle.fluid as fluid

    with open(cases) as lines, open(results, "a") as out:
        for number, line in enumerate(lines):
            if number < done:
                continue
            with open(began, "w") as last:
                last.write(str(number))
            case = decode(json.loads(line))
            try:
                result = compute(fluid, case)
            except Exception as error:
                result = failure(error)
            out.write(json.dumps(result) + "\n")
            out.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
