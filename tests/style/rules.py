"""The style rules as data: the include table, the banned calls, the limits.

Why apart: whoever adds a folder, a third-party package or an exception edits this file only.
Every entry says what to do instead, because the message is what people read.
Not here: how the rules are checked (checks.py), how C++ is read (cpp_text.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100

CPP_SUFFIXES = (".h", ".hpp", ".cc")
CPP_FOLDERS = ("proto", "cuda", "daemon", "client", "adapters", "tests")

# The public C header: a guard macro, because any C compiler reads it.
C_HEADER = "client/memdecay.h"

# What may stand at the top of the repository, beside dot files.
TOP_LEVEL = {
    "CMakeLists.txt",
    "CMakePresets.json",
    "LICENSE",
    "README.md",
    "adapters",
    "client",
    "cuda",
    "daemon",
    "deploy",
    "proto",
    "tests",
}


@dataclass(frozen=True)
class Folder:
    """One row of the include table. The longest matching prefix of a file's path decides."""

    prefix: str
    may_include: tuple[str, ...]  # prefixes of root-relative includes, its own included
    third_party: tuple[str, ...]  # names in THIRD_PARTY
    banned_std: tuple[str, ...] = ()  # system and standard headers it may not use


# Third-party packages by the first characters of an include.
THIRD_PARTY = {
    "absl": ("absl/",),
    "openssl": ("openssl/",),
    "protobuf": ("google/protobuf/",),
    "generated": ("memdecay/v1/",),
    "grpc": ("grpc/", "grpcpp/", "grpc++/"),
    "xxhash": ("xxhash.h",),
    "boost": ("boost/",),
    "cuda": ("cuda.h", "cudaTypedefs.h"),
    "spdlog": ("spdlog/",),
    "fmt": ("fmt/",),
    "prometheus": ("prometheus/", "CivetServer.h"),
    "yaml": ("yaml-cpp/",),
    "cli": ("CLI/",),
    "json": ("nlohmann/",),
    "pcre2": ("pcre2.h",),
    "zlib": ("zlib.h",),
    "gtest": ("gtest/", "gmock/"),
    "benchmark": ("benchmark/",),
}

_THREADS_AND_FILES = (
    "thread",
    "mutex",
    "shared_mutex",
    "condition_variable",
    "future",
    "atomic",
    "fstream",
    "filesystem",
    "iostream",
    "cstdio",
    "unistd.h",
    "fcntl.h",
    "pthread.h",
    "sys/",
    "absl/synchronization/",
    "absl/time/clock.h",
)

_DAEMON = ("daemon/", "cuda/", "proto/")

INCLUDE_TABLE = (
    Folder("proto/contract/", ("proto/contract/",), ("absl",)),
    Folder("proto/contract/page_key.cc", ("proto/contract/",), ("absl", "openssl")),
    Folder("proto/", ("proto/",), ("absl", "generated", "protobuf", "grpc")),
    Folder("cuda/", ("cuda/", "proto/"), ("absl", "xxhash", "boost")),
    Folder("cuda/driver", ("cuda/", "proto/"), ("absl", "cuda")),
    Folder("cuda/kernels/", ("cuda/", "proto/"), ("absl", "cuda")),
    Folder("daemon/base/", ("daemon/base/", "proto/"), ("absl", "spdlog", "fmt", "prometheus")),
    Folder(
        "daemon/policy/",
        ("daemon/policy/", "daemon/base/", "proto/"),
        ("absl",),
        _THREADS_AND_FILES,
    ),
    Folder(
        "daemon/policy/trace/",
        ("daemon/policy/", "proto/"),
        ("absl", "json"),
        _THREADS_AND_FILES,
    ),
    Folder(
        "daemon/ledger/",
        ("daemon/ledger/", "daemon/policy/", "daemon/base/", "proto/"),
        ("absl",),
        _THREADS_AND_FILES,
    ),
    Folder(
        "daemon/tiers/", ("daemon/tiers/", "daemon/base/", "cuda/", "proto/"), ("absl", "xxhash")
    ),
    Folder(
        "daemon/reactor/",
        (
            "daemon/reactor/",
            "daemon/ledger/",
            "daemon/policy/",
            "daemon/tiers/",
            "daemon/base/",
            "cuda/",
            "proto/",
        ),
        ("absl",),
    ),
    Folder(
        "daemon/",
        _DAEMON,
        (
            "absl", "generated", "protobuf", "grpc", "yaml", "cli",
            "json", "spdlog", "fmt", "prometheus",
        ),
    ),
    Folder("client/memdecay", ("client/memdecay",), ()),  # the public headers
    # decisions/0010 and 0012: tools measure with the code that the daemon runs. Only what is pure,
    # only there.
    Folder(
        "client/ctl/replay/",
        ("client/", "daemon/policy/retention/", "daemon/policy/trace/", "proto/"),
        ("absl", "json", "zlib"),
    ),
    Folder("client/ctl/record/", ("client/", "proto/"), ("absl", "generated", "json", "zlib")),
    Folder(
        "client/ctl/calibrate/",
        (
            "client/", "daemon/policy/calibration/", "daemon/policy/trace/",
            "daemon/policy/options.h", "proto/",
        ),
        ("absl", "json"),
    ),
    Folder(
        "client/",
        ("client/", "cuda/", "proto/"),
        ("absl", "boost", "generated", "protobuf", "grpc", "cli", "json", "fmt"),
    ),
    Folder(
        "adapters/",
        ("adapters/", "client/", "proto/contract/"),
        ("absl", "openssl", "pcre2", "json", "cli"),
    ),
    Folder("tests/", ("",), tuple(THIRD_PARTY)),
)


@dataclass(frozen=True)
class Ban:
    """A call or a word that may not stand in code (comments and strings are not looked at)."""

    name: str
    pattern: re.Pattern[str]
    instead: str
    allowed: re.Pattern[str] | None = None  # paths where it is right
    only: re.Pattern[str] | None = None  # paths where the rule holds; default: everywhere


def _ban(
    name: str, pattern: str, instead: str, allowed: str | None = None, only: str | None = None
) -> Ban:
    return Ban(
        name,
        re.compile(pattern),
        instead,
        re.compile(allowed) if allowed else None,
        re.compile(only) if only else None,
    )


_PURE = r"^(proto/contract|daemon/(policy|ledger|reactor))/"
# Tests against real processes have deadlines, benchmarks measure: both read the clock.
_REAL_TESTS = r"^tests/(bench|integration|contract|support|gpu|fuzz|eval|scenario|lab)/"

BANS = (
    _ban(
        "clock",
        r"\b(steady_clock|system_clock|high_resolution_clock)\s*::\s*now\b|\bclock_gettime\s*\("
        r"|\bgettimeofday\s*\(|\babsl::Now\s*\(|\bstd::time\s*\(",
        "take an Instant as an argument, or the clock port by the constructor;"
        " the real one is daemon/base/real_clock (client: client/lib/steady_clock)",
        allowed=r"(^|/)(real|steady)_clock\.(h|cc)$|^cuda/timeline\.cc$|^adapters/"
        r"|^client/ctl/|" + _REAL_TESTS,
    ),
    _ban(
        "sleep",
        r"\b(sleep_for|sleep_until)\s*\(|\b(usleep|nanosleep|clock_nanosleep|SleepFor)\s*\("
        r"|(?<![\w.>:])(::)?sleep\s*\(\s*\w+\s*\)\s*;",
        "wait for the thing itself: a condition, an eventfd, a fence, poll with a deadline",
    ),
    _ban(
        "random",
        r"\bstd::random_device\b|\babsl::(Insecure)?BitGen\b"
        r"|(?<![\w.>])(rand|srand|drand48|getrandom|getentropy|arc4random)\s*\(",
        "take a generator by the constructor: daemon/base/random (seeded in simulation)",
        allowed=r"(^|/)(real_)?random\.(h|cc)$",
    ),
    _ban(
        "random engine",
        r"\bstd::(mt19937(_64)?|default_random_engine|minstd_rand0?)\b",
        "take a generator by the constructor: daemon/base/random (seeded in simulation)",
        allowed=r"^tests/|(^|/)(real_)?random\.(h|cc)$",  # tests seed it with a constant
    ),
    _ban(
        "environment",
        r"(?<![\w.>])(secure_)?getenv\s*\(|\b(setenv|putenv|unsetenv)\s*\(",
        "put it into the configuration file or a flag; main.cc passes it by the constructor",
        allowed=r"^daemon/main\.cc$|^client/lib/handle_link\.cc$|(^|/)(sd_notify|notify)\.cc$|^client/ctl/|^tests/",
    ),
    _ban(
        "file",
        r"\b(std::)?(ifstream|ofstream|fstream)\b|\bstd::filesystem\b|\bfopen\s*\("
        r"|(?<![\w>])::(open|openat|creat|mmap|unlink|rename)\s*\(",
        "this layer only decides: return an effect, and let a tier or the server touch the file",
        allowed=r"^proto/contract/(handle_socket|mapping|mapped_\w+)\.(h|cc)$",
        only=_PURE,
    ),
    _ban(
        "output",
        r"\bstd::(cout|cerr|clog)\b|(?<![\w.>])(std::)?(printf|fprintf|puts)\s*\(",
        "libraries return a Status or log through daemon/base/log; programs may print",
        allowed=r"^proto/contract/check\.cc$",
        only=r"^(proto|cuda|daemon/(base|policy|ledger|tiers|reactor|server))/",
    ),
    _ban(
        "thread",
        r"\bstd::(thread|jthread|async)\b|\bpthread_create\s*\(|\babsl::Mutex\b|\bstd::mutex\b",
        "one thread owns this: take the event as an argument and return effects",
        only=r"^(proto/contract|daemon/(policy|ledger))/",
    ),
    _ban(
        "detached thread",
        r"\bstd::async\b|(?i:thread|worker)\w*\s*(\.|->)\s*detach\s*\(",
        "own the thread and join it in the destructor (std::jthread, or stop and join)",
    ),
    _ban(
        "shared_ptr",
        r"\b(std::)?shared_ptr\s*<(?!\s*(const\b|(::)?(grpc|spdlog|prometheus)::))"
        r"|\bstd::make_shared\s*<(?!\s*(const\b|(::)?(grpc|spdlog|prometheus)::))|\benable_shared_from_this\b",
        "own by value or unique_ptr, lend a reference; shared_ptr<const T> for a snapshot",
        allowed=r"^tests/",
    ),
    _ban(
        "dynamic_cast",
        r"\bdynamic_cast\s*<",
        "use std::variant with std::visit, or a function of the port",
    ),
    _ban(
        "throw",
        r"\bthrow\b(?!\s*\()|\bthrow\s*\(|\bstd::rethrow_exception\b",
        "return absl::Status with an ErrorDetail (proto/contract/error.h); a broken invariant"
        " of ours is MEMDECAY_CHECK",
        allowed=r"^client/memdecay\.hpp$",
    ),
    _ban(
        "coroutine",
        r"\bco_(await|return|yield)\b",
        "a call is a token that an effect finishes (daemon/ARCHITECTURE.md)",
    ),
    _ban(
        "standard library not in both compilers",
        r"#\s*include\s*<(ranges|format|expected|print|generator|stacktrace)>|\bstd::(format|"
        r"expected|print|println)\b|\bstd::(ranges::views|views)::",
        "loops and std::ranges algorithms; absl::StrCat or fmt; absl::StatusOr",
    ),
    _ban(
        "assert",
        r"(?<![\w])assert\s*\(|#\s*include\s*<cassert>",
        "MEMDECAY_CHECK (proto/contract/check.h): it is on in release as well",
    ),
    _ban(
        "process exit",
        r"(?<![\w.>])(std::)?(abort|exit|quick_exit|_exit|_Exit|terminate)\s*\(",
        "return an error to main; MEMDECAY_CHECK for a broken invariant",
        allowed=r"^proto/contract/check\.cc$|(^|/)main\.cc$|^tests/",
    ),
    _ban(
        "friend",
        r"\bfriend\b(?![^;{]*\b(operator|AbslHashValue|AbslStringify)\b)",
        "give the class a narrow public function, or move both into one .cc",
        allowed=r"^tests/",
    ),
    _ban(
        "using namespace",
        r"\busing\s+namespace\s+(?!([\w:]*literals|memdecay|ledger|client|server|policy)\b)",
        "name what you use (`using memdecay::SlotRef;` in a .cc), or qualify it",
    ),
    _ban(
        "using namespace in a header",
        r"\busing\s+namespace\b",
        "qualify the name: a header must not decide for those who include it",
        only=r"\.(h|hpp)$",
    ),
    _ban(
        "bool parameter",
        r"[(,]\s*(const\s+)?bool\s+\w+\s*(=\s*(true|false)\s*)?(,|\)(?!\s*(const\s*)?override))",
        "an enum class with two names reads at the call site",
        allowed=r"^tests/|^client/memdecay\.h$",
    ),
    _ban(
        "fixed port",
        r":(50051|8080|6379|9090)\b",
        "bind port 0 and ask for the number, or use a Unix socket in a temporary directory",
        only=r"^tests/(?!style/)",
    ),
    _ban(
        "unfinished",
        r"\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b",
        "finish it, refuse it with a typed error, or write the limit into README or decisions",
    ),
)

# Mutable state at namespace scope that is right, with its reason.
GLOBALS = {
    "client/lib/last_error.cc": "memdecay_last_error() of the C interface, one a thread like errno",
}

# These bans look at comments and strings too.
WHOLE_TEXT_BANS = {"unfinished", "fixed port"}

# The gRPC callback API and similar ports decide these signatures, not we.
BOOL_PARAMETER_EXCEPTIONS = re.compile(r"\bOn\w+\s*\(")

# Words that do not belong in any committed file. Written so that this file does not contain them.
FORBIDDEN_WORDS = (
    (
        re.compile(r"(?<![\w.$}-])/(wor" + r"k|roo" + r"t|far" + r"m|home/\w+)/"),
        "a path of one machine; use a path relative to the repository, $HOME or a temp directory",
    ),
    (
        re.compile(r"py" + r"pi\.org|files\.python" + r"hosted|(deb|ftp)\.debian" + r"\.org", re.I),
        "a registry's host; the machine's own pip and apt configuration names it",
    ),
    (
        re.compile(r"\bissue" + r" #?\d+\b|as an a" + r"i\b|language model" + r" assistant", re.I),
        "how or where this is developed; say the reason itself",
    ),
)
