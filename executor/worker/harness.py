# The Python side of the REPL. It is handed over on a pipe and never stands in a
# file or in a list of processes. What it answers is checked by the other side:
# the code that it runs can do with it what it likes.
import ast, base64, builtins, io, json, linecache, os, struct, sys, traceback, types

MOST_VALUE, MOST_TRACE, MOST_NAMES, MOST_NAME = 64 << 10, 16 << 10, 200, 100
MOST_FIGURES, MOST_FIGURE = 8, 4 << 20


def channel():
    # High numbers, so that code which closes or replaces the usual ones does not
    # cut the line; not inherited by what the code starts.
    import fcntl

    def up(fd, base):
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, base)
        if fd > 2:
            os.close(fd)
        return high

    return up(3, 200), up(4, 201), up(1, 202), up(2, 203)


def cut(text, most):
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= most:
        return data.decode()
    return data[:most].decode("utf-8", "ignore") + "… (%d more bytes)" % (len(data) - most)


def trace(error):
    # The frames above the caller's own code are the harness's.
    tb = error.__traceback__
    while tb is not None and not tb.tb_frame.f_code.co_filename.startswith("<call "):
        tb = tb.tb_next
    try:
        lines = traceback.format_exception(type(error), error, tb)
    except BaseException as other:  # of an exception that cannot be shown
        lines = ["%s (which cannot be shown: %s)\n" % (type(error).__name__, type(other).__name__)]
    text = "".join(lines).rstrip("\n")
    if len(text) > MOST_TRACE:
        text = text[: MOST_TRACE // 2] + "\n…\n" + text[-MOST_TRACE // 2 :]
    return cut(text, MOST_TRACE + 1024)


def run(code, name, space):
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    tree = ast.parse(code, name, "exec")
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    if tree.body:
        exec(compile(tree, name, "exec"), space)
    if last is None:
        return None
    value = eval(compile(last, name, "eval"), space)
    if value is None:
        return None
    space["_"] = value
    return cut(repr(value), MOST_VALUE)


def figures(notes):
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return []
    images = []
    for number in plt.get_fignums():
        if len(images) == MOST_FIGURES:
            notes.append("only the first %d figures are given" % MOST_FIGURES)
            break
        out = io.BytesIO()
        plt.figure(number).savefig(out, format="png")
        if out.tell() > MOST_FIGURE:
            notes.append("figure %d has more than %d MiB and is left out" % (number, MOST_FIGURE >> 20))
        else:
            images.append(base64.b64encode(out.getvalue()).decode())
    plt.close("all")
    return images


def mend(notes):
    # exit() closes standard input, and code may close the others: the next call
    # needs them.
    for fd, copy, name, mode in ((0, None, "stdin", "r"), (1, 202, "stdout", "w"), (2, 203, "stderr", "w")):
        try:
            if not getattr(sys, name).closed:
                continue
            if copy is None:
                setattr(sys, name, open(os.devnull))
                continue
            os.dup2(copy, fd)
            setattr(sys, name, open(fd, mode, encoding="utf-8", errors="backslashreplace", closefd=False))
            notes.append("sys.%s was closed and is open again" % name)
        except BaseException:
            pass  # replaced by something odd: the code's own affair


def names(space, ours):
    found = [n for n in space if isinstance(n, str) and not n.startswith("_") and n not in ours]
    return sorted(n if len(n) <= MOST_NAME else n[:MOST_NAME] + "…" for n in found)[:MOST_NAMES]


def answer(request, number, space, ours):
    reply, notes = {}, []
    try:
        value = run(request["code"], "<call %d>" % number, space)
        if value is not None:
            reply["value"] = value
    except BaseException as error:
        reply["error"], reply["kind"] = trace(error), type(error).__name__
        error.__traceback__ = None  # it would keep the frames' variables alive
    try:
        reply["images"] = figures(notes)
    except BaseException as error:
        notes.append("the figures cannot be given: " + cut(repr(error), 1024))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass  # closed or replaced by the code: its own affair
    mend(notes)
    reply["names"], reply["notes"] = names(space, ours), notes
    return reply


def main():
    requests, replies, out, err = channel()
    me, number = os.getpid(), 0
    os.environ.setdefault("MPLBACKEND", "Agg")
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    sys.argv = [""]
    if "" not in sys.path:
        sys.path.insert(0, "")
    space = module.__dict__
    ours = set(space)

    def receive(count):
        data = b""
        while len(data) < count:
            piece = os.read(requests, count - len(data))
            if not piece:
                os._exit(0)  # nobody asks any more
            data += piece
        return data

    def send(fd, data):
        while data:
            data = data[os.write(fd, data) :]

    while True:
        request = json.loads(receive(struct.unpack(">I", receive(4))[0]))
        number += 1
        linecache.cache.pop("<call %d>" % (number - 100), None)
        reply = answer(request, number, space, ours)
        if os.getpid() != me:
            os._exit(0)  # a copy that the code has made of the process, and not ended
        # What was printed ends here, whatever the code made of its streams.
        mark = request["mark"].encode()
        send(out, mark)
        send(err, mark)
        data = json.dumps(reply).encode()
        send(replies, struct.pack(">I", len(data)) + data)


main()
