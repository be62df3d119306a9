"""The trainer protocol of Coterie (docs/trainer.md), with the standard library alone.

Copy this file beside your training script and call serve(). Standard output
belongs to the protocol from then on: print() goes to standard error.
"""

import array
import json
import struct
import sys

MAGIC = b"CTR1"
PREFIX = struct.Struct("<4sIQ")  # magic, bytes of the header, bytes of the values
PROTOCOL = 1


def _floats(values):
    """Little-endian float32 from any sequence of numbers."""
    out = array.array("f", values)
    if sys.byteorder == "big":
        out.byteswap()
    return out.tobytes()


def _numbers(raw):
    values = array.array("f")
    values.frombytes(raw)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _read(stream, size):
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data


def _answer(stream, header, values=()):
    raw, text = _floats(values), json.dumps(header).encode()
    stream.write(PREFIX.pack(MAGIC, len(text), len(raw)) + text + raw)
    stream.flush()


def serve(trainer):
    """Answers requests until there are no more.

    trainer has parameters and examples (two numbers) and those of these methods
    that its mode needs:
      train(theta, epochs, step, batch, loss)  the update: new parameters - theta
      loss(theta)                              one number, to compare models by
      losses(theta, examples)                  one number a listed example
      gradients(theta, examples)               one gradient a listed example,
                                               each computed from that example alone
    """
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            magic, header_size, values_size = PREFIX.unpack(_read(requests, PREFIX.size))
            if magic != MAGIC:
                raise ValueError("the request does not begin with " + repr(MAGIC))
            request = json.loads(_read(requests, header_size))
            theta = _numbers(_read(requests, values_size))
        except EOFError:
            return  # the participant has closed our input: we are done
        header, values = {"id": request["id"]}, ()
        try:
            op = request["op"]
            if op == "hello":
                header.update(protocol=PROTOCOL, parameters=trainer.parameters, examples=trainer.examples)
            elif op == "train":
                values = trainer.train(theta, request.get("epochs", 1), request.get("step", 0.0),
                                       request.get("batch", 0), request.get("loss", ""))
            elif op == "loss":
                header["loss"] = float(trainer.loss(theta))
            elif op == "losses":
                values = trainer.losses(theta, request["examples"])
            elif op == "gradients":
                values = [g for one in trainer.gradients(theta, request["examples"]) for g in one]
            else:
                raise NotImplementedError("this trainer does not know " + op)
        except Exception as err:  # the other side is told, and may ask again
            header, values = {"id": request["id"], "error": "%s: %s" % (type(err).__name__, err)}, ()
        _answer(answers, header, values)
