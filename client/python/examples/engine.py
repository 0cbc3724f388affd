"""A whole engine in one page: writes two pages, reads them back, pauses and goes on.

What it is: the example of the Python client. Usage: engine.py [SOCKET_DIR]
"""

import sys

from memdecay import Client, Group, Layout, Rope

TOKENS, PAGE = 16, 65536  # tokens and bytes of a page; the daemon's page_tokens must be 16

LAYOUT = Layout(
    model="example",
    weights_fingerprint="sha256:0",
    revision="1",
    adapter="none",
    tokenizer_fingerprint="bytes",
    dtype="f16",
    quantization="none",
    scales="none",
    groups=(Group(1, 8, 64, TOKENS, "token.head.dim", 0, PAGE),),
    rope=Rope(),
    tensor_parallel=1,
    producer="example",
)


def main() -> None:
    directory = sys.argv[1] if len(sys.argv) > 1 else None
    with Client("example", directory) as client:
        session = client.open(LAYOUT)
        for first in range(2):
            page = session.extend(1)[0]
            tokens = [first * TOKENS + i for i in range(TOKENS)]
            assert page.write is not None
            for i, token in enumerate(tokens):  # "compute"
                page.write[i * PAGE // TOKENS] = token
            session.seal(first, tokens, had_holes=False)
        for page in session.begin_step():
            if page.read is not None:  # None: a hole, attend to the others
                print(f"page {page.index}: {page.read[PAGE // TOKENS]}")
        session.end_step(step=1, position=2 * TOKENS)
        session.park("waiting_tool")  # the daemon may take everything
        session.unpark()  # … and brings it back
        session.close(forget=True)
    print("done")


if __name__ == "__main__":
    main()
