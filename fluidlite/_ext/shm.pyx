# distutils: language = c++
"""Memory that a worker process and its parent share: a ring of messages, and slots in a file without a name, used again
and again.

The worker (`Arena`) puts arrays into slots, the parent (`Window`) gets leases on them; a slot is the worker's again
when the last lease is let go. Nothing else has to be said: the count of leases stands in the slot itself.
"""
cimport cython
cimport numpy as cnp
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector
from posix.mman cimport munmap

import os

cnp.import_array()

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    object PyUnicode_DecodeUTF8(const char* text, Py_ssize_t size, const char* errors)

cdef extern from "shm/shared_memory.h" namespace "fluidlite" nogil:
    const size_t kHeaderSize
    void lease(void* slot)
    void give_back(void* slot)
    cbool leased(const void* slot)
    void* map_shared(int file, size_t offset, size_t size)
    void drop_pages(int file, size_t offset, size_t size)
    size_t slot_size(size_t size)

cdef extern from "shm/ring.h" namespace "fluidlite" nogil:
    cdef cppclass RingMemory "fluidlite::Ring":
        pass

    cbool ring_put(RingMemory& ring, uint64_t number, const void* message, size_t size)
    cbool ring_wanted(RingMemory& ring)
    cbool ring_next(const RingMemory& ring, uint64_t number, size_t& size)
    void ring_take(RingMemory& ring, void* to, size_t size)
    cbool ring_doze(RingMemory& ring)

# The ring stands at the beginning of the file, on pages of its own.
cdef size_t RING = (sizeof(RingMemory) + 4095) // 4096 * 4096

cdef struct PlaceInSlot:
    size_t slot    # its number
    size_t offset  # of the slot in the file
    size_t size    # of the slot
    size_t start   # of the array in the slot
    size_t length  # of the array

# Smaller arrays travel in the message, which costs less than looking after a slot.
cdef size_t SMALL = 1 << 14

# How many forks led to this process: leases that the child of a fork inherited are its parent's.
cdef int forks = 0
cdef int64_t live_leases = 0
cdef int64_t live_mappings = 0
cdef int64_t mapped_bytes = 0


def _forked():
    global forks, live_leases
    forks += 1
    live_leases = 0


os.register_at_fork(after_in_child=_forked)


def create_file():
    """A new file without a name in memory, as a descriptor: whatever happens to its processes, it goes with the last
    of them.
    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create("fluidlite batches")
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
    import tempfile  # slow to import, and Linux does without

    with tempfile.TemporaryFile(dir=folder, prefix="fluidlite") as file:
        return os.dup(file.fileno())


cdef class Mapping:
    """A part of a file in the memory of this process."""
    cdef char* address
    cdef size_t size

    def __cinit__(self, int file, size_t offset, size_t size):
        global live_mappings, mapped_bytes
        with nogil:
            self.address = <char*> map_shared(file, offset, size)
        if self.address == NULL:
            raise MemoryError(f"{size} bytes of shared memory cannot be mapped")
        self.size = size
        live_mappings += 1
        mapped_bytes += size

    def __dealloc__(self):
        global live_mappings, mapped_bytes
        if self.address != NULL:
            munmap(self.address, self.size)
            live_mappings -= 1
            mapped_bytes -= self.size


cdef class Ring:
    """Messages (bytes) from the worker to its parent in the beginning of `file`; each side has an object of its own.

    Messages are numbered in the order in which they were sent; those that are too big, or find no room, go another way.
    Raises OSError or MemoryError if there is no memory.
    """
    cdef Mapping mapping
    cdef RingMemory* ring

    def __init__(self, int file):
        os.posix_fallocate(file, 0, RING)
        self.mapping = Mapping(file, 0, RING)
        self.ring = <RingMemory*> self.mapping.address

    def put(self, uint64_t number, bytes message):
        """Append a message; False if there is no room."""
        return ring_put(self.ring[0], number, PyBytes_AS_STRING(message), len(message))

    def wanted(self):
        """Whether the reader waits for a sign that something was put; True once."""
        return ring_wanted(self.ring[0])

    def take(self, uint64_t number):
        """The next message if it has this number, else None."""
        cdef size_t size = 0
        if not ring_next(self.ring[0], number, size):
            return None
        message = PyBytes_FromStringAndSize(NULL, size)
        ring_take(self.ring[0], PyBytes_AS_STRING(message), size)
        return message

    def doze(self):
        """Ask for a sign when something is put; False if something is there, and there will be no sign."""
        return ring_doze(self.ring[0])


cdef class Slot:
    """A slot as the worker sees it."""
    cdef Mapping mapping
    cdef size_t index, offset
    cdef int users  # holders in the worker itself

    cdef bint unused(self) noexcept:
        return self.users == 0 and not leased(self.mapping.address)


cdef class SlotMemory:
    """The memory of a slot, which the worker has as long as this object lives (a writable buffer)."""
    cdef Slot slot

    def __cinit__(self, Slot slot):
        self.slot = slot
        slot.users += 1

    def __dealloc__(self):
        if self.slot is not None:
            self.slot.users -= 1

    def __getbuffer__(self, Py_buffer* view, int flags):
        cdef Mapping mapping = self.slot.mapping
        PyBuffer_FillInfo(view, self, mapping.address + kHeaderSize, mapping.size - kHeaderSize, False, flags)


@cython.final
cdef class Place:
    """Where an array of a message stands; it has the slot until the message is sent."""
    cdef SlotMemory memory
    cdef PlaceInSlot at


cdef class Arena:
    """The worker's side: slots in `file`, made when they are needed.

    `keep`: how many unused bytes may stay for later, in units of what one message takes. `limit`: how many bytes all
    slots may have together, None for what the system gives.
    """
    cdef int file
    cdef object limit
    cdef size_t keep, largest_message, end, used, counter
    cdef list slots, pending, dropped
    cdef readonly object shortage  # (bytes needed, bytes available) of the first time that memory was lacking

    def __init__(self, int file, size_t keep, limit=None):
        self.file = file
        self.keep = keep
        self.limit = limit
        self.slots, self.pending, self.dropped = [], [], []
        self.largest_message = self.used = self.counter = 0
        self.end = RING
        self.shortage = None

    def block(self, size_t size):
        """At least `size` bytes as a SlotMemory; None if they are few, or there is no shared memory for them."""
        if size < SMALL:
            return None
        cdef Slot slot = self.find(size)
        return None if slot is None else SlotMemory(slot)

    def place(self, buffer):
        """Take the contents of a `pickle.PickleBuffer` into the message, without a copy if they stand in a slot.

        True if they have to travel in another way (as `pickle` wants it from a buffer_callback).
        """
        cdef Py_buffer view
        raw = buffer.raw()
        PyObject_GetBuffer(raw, &view, PyBUF_SIMPLE)
        try:
            return self.into(<char*> view.buf, view.len) is None
        finally:
            PyBuffer_Release(&view)

    cdef Place into(self, char* data, size_t length):
        """Take memory into the message, without a copy if it stands in a slot; None if it has to travel in another way."""
        cdef Slot slot = self.holding(data)
        cdef Place made
        cdef SlotMemory memory
        cdef char* to
        if slot is not None:
            memory = SlotMemory(slot)
            to = data
        else:
            memory = self.block(length)
            if memory is None:
                return None
            slot = memory.slot
            to = slot.mapping.address + kHeaderSize
            with nogil:
                memcpy(to, data, length)
        made = Place()
        made.memory = memory
        made.at.slot, made.at.offset, made.at.size = slot.index, slot.offset, slot.mapping.size
        made.at.start, made.at.length = to - slot.mapping.address, length
        self.pending.append(made)
        return made

    def commit(self):
        """The message is sent: returns where its buffers stand, as `Window.lease` takes it, and the numbers of slots
        that are gone.
        """
        cdef Place place
        cdef size_t total = 0
        places = []
        for place in self.pending:
            lease(place.memory.slot.mapping.address)
            total += place.at.size
            places.append((place.at.slot, place.at.offset, place.at.size, place.at.start, place.at.length))
        self.pending = []
        if total > self.largest_message:
            self.largest_message = total
        self.trim()
        gone, self.dropped = self.dropped, []
        return places, gone

    def cancel(self):
        """The message is not sent after all."""
        self.pending = []

    cdef Slot find(self, size_t size):
        """The smallest unused slot with room for `size` bytes, or a new one; None if there is no memory for it."""
        cdef Slot slot, best = None
        for slot in self.slots:
            if (slot.mapping.size >= size + kHeaderSize and slot.unused()
                    and (best is None or slot.mapping.size < best.mapping.size)):
                best = slot
        return self.extend(slot_size(size)) if best is None else best

    cdef Slot holding(self, char* address):
        cdef Slot slot
        for slot in self.slots:
            if slot.mapping.address <= address < slot.mapping.address + slot.mapping.size:
                return slot
        return None

    cdef Slot extend(self, size_t size):
        cdef Slot slot
        if self.limit is not None and self.used + size > self.limit:
            self.lacking(size, max(self.limit - self.used, 0))
            return None
        try:
            os.posix_fallocate(self.file, self.end, size)  # now, because later a lack of pages is a SIGBUS
            slot = Slot()
            slot.mapping = Mapping(self.file, self.end, size)
        except (OSError, MemoryError):
            self.lacking(size, self.available())
            return None
        slot.index, slot.offset, slot.users = self.counter, self.end, 0
        self.counter += 1
        self.end += size
        self.used += size
        self.slots.append(slot)
        return slot

    cdef lacking(self, size, available):
        if self.shortage is None:
            self.shortage = (int(size), int(available))

    cdef available(self):
        """About how many bytes the file can still have."""
        import resource

        bounds = []
        system = os.fstatvfs(self.file)
        if system.f_blocks:  # 0: no limit of its own
            bounds.append(system.f_bavail * system.f_frsize)
        largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if largest != resource.RLIM_INFINITY:
            bounds.append(largest - self.end)
        bounds.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        return max(min(bounds), 0)

    cdef trim(self):
        """Give back unused slots, small ones first, beyond what `keep` messages need."""
        cdef Slot slot
        cdef size_t unused = 0
        for slot in self.slots:
            if slot.unused():
                unused += slot.mapping.size
        if unused <= self.keep * self.largest_message:
            return
        self.slots.sort(key=_size_of)
        for slot in list(self.slots):
            if unused <= self.keep * self.largest_message:
                return
            if slot.unused():
                unused -= slot.mapping.size
                self.used -= slot.mapping.size
                self.slots.remove(slot)
                drop_pages(self.file, slot.offset, slot.mapping.size)
                self.dropped.append(slot.index)


def _size_of(Slot slot):
    return slot.mapping.size


cdef class Lease:
    """A buffer in a slot; the slot goes back to the worker when all leases on it are gone."""
    cdef Mapping mapping
    cdef size_t start
    cdef Py_ssize_t length
    cdef int forks

    def __dealloc__(self):
        global live_leases
        if self.mapping is not None and self.forks == forks:
            give_back(self.mapping.address)
            live_leases -= 1

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.mapping.address + self.start, self.length, False, flags)


cdef class Window:
    """The parent's side: the slots of the worker's `file`, mapped when they are first seen."""
    cdef int file
    cdef dict mappings

    def __init__(self, int file):
        self.file = file
        self.mappings = {}

    def lease(self, size_t index, size_t offset, size_t size, size_t start, size_t length):
        """The lease on a buffer, of which `Arena.commit` told."""
        return self.leased(PlaceInSlot(index, offset, size, start, length))

    cdef Lease leased(self, PlaceInSlot at):
        global live_leases
        cdef Lease made = Lease()
        cdef Mapping mapping = self.mappings.get(at.slot)
        if mapping is None:
            mapping = self.mappings[at.slot] = Mapping(self.file, at.offset, at.size)
        made.start, made.length, made.forks = at.start, at.length, forks
        made.mapping = mapping
        live_leases += 1
        return made

    def forget(self, index):
        """The slot is gone."""
        self.mappings.pop(index, None)


include "shm/message.pxi"


def counters():
    """Shared memory in this process: `leases` that are held, `mappings` and their `bytes`."""
    return {"leases": live_leases, "mappings": live_mappings, "bytes": mapped_bytes}
