package pymodule

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// snippets are run by Python and by the evaluator; both say what result is.
var snippets = []string{
	"result = [1 + 2 * 3, 7 // 2, -7 // 2, -7 % 3, 7 / 2, 2 ** 10, 2 ** -1, 1 << 4, 6 & 3, 6 | 3, 6 ^ 3, ~5, -3, not 0]",
	"result = [1.5 + 1, 3.0 * 2, 7.5 // 2, 7.5 % 2, 1e-5, 1e20, 0.1 + 0.2, True + 1, int(3.9), float('1.5'), round(2.5), abs(-3)]",
	"result = [1 < 2 <= 2 < 3, 1 == 1.0, 'a' < 'b', (1, 2) == (1, 2), [1] != [2], None is None, 3 in (1, 2, 3), 'x' not in 'abc']",
	"result = [1 if 0 else 2, 0 or 'x', 1 and 'y', None or [], (1 and 0) or 3]",
	"a, (b, c), *d = 1, (2, 3), 4, 5\nresult = [a, b, c, d]",
	"x = y = [1]\ny += [2]\ny[0] = 9\nresult = [x, x is y]",
	"d = {'a': 1, 'b': 2, 1: 'one', True: 'true'}\nd['c'] = 3\ndel d['a']\nresult = [d, d.get('z', 0), d.pop('b'), list(d.items()), 'c' in d, {**d, 'e': 5}, len(d)]",
	"s = 'Hello, World'\nresult = [s[1:4], s[::-1], s[-1], s.lower(), s.split(', '), '-'.join(['a', 'b']), s.replace('l', 'L'), s.startswith(('He', 'x')), 'a%sb%d' % ('x', 3)]",
	"name, n = 'x', 3.14159\nresult = [f'{name}={n:.2f}', f'{name!r}', f'{{}}', f'{1 + 1}', f'{n}']",
	"l = [5, 1, 4]\nl.append(2)\nl.insert(0, 9)\nresult = [l, sorted(l), l[1:3], l[-2:], l.index(4), list(reversed(l)), sum(l), min(l), max(1, 2), l * 2, l + [0], l.pop(), l]",
	"result = [[x * y for x in range(3) if x for y in (1, 2)], {k: v for k, v in zip('ab', (1, 2))}, {1, 2} | {2, 3}, list(x for x in 'ab'), any(x > 1 for x in [1, 2]), all([])]",
	"result = []\nfor i, (a, b) in enumerate([(1, 2), (3, 4)], start=5):\n    if i == 6:\n        break\n    result.append((i, a, b))\nelse:\n    result.append('else')\nwhile True:\n    result.append('w')\n    if len(result) > 3:\n        break",
	"def f(a, b=2, *args, c, d=4, **kw):\n    return (a, b, args, c, d, kw)\nresult = [f(1, c=3), f(1, 5, 6, 7, c=3, e=9), f(*[1, 2], **{'c': 3, 'x': 1})]",
	"def outer():\n    n = 0\n    def inner(k):\n        return n + k\n    n = 10\n    return [inner(1), (lambda q: q * n)(2)]\nresult = outer()",
	"def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)\nresult = fact(10)",
	"class A:\n    k = 1\n    def __init__(self, x):\n        self.x = x\n    def get(self):\n        return ('A', self.x)\n    @property\n    def double(self):\n        return self.x * 2\n    @staticmethod\n    def st(v):\n        return v\n    @classmethod\n    def make(cls, v):\n        return cls(v)\nclass B(A):\n    def get(self):\n        return ('B',) + super().get()\nb = B.make(4)\nresult = [b.get(), b.double, B.k, b.st(3), isinstance(b, A), issubclass(B, A), hasattr(b, 'y'), getattr(b, 'y', 7), type(b).__name__, b.__class__.__name__]",
	"class A:\n    def f(self): return ['A']\nclass B(A):\n    def f(self): return ['B'] + super().f()\nclass C(A):\n    def f(self): return ['C'] + super().f()\nclass D(B, C):\n    def f(self): return ['D'] + super().f()\nresult = [D().f(), [k.__name__ for k in D.__mro__]]",
	"class L:\n    def __init__(self): self.items = [1, 2]\n    def __len__(self): return len(self.items)\n    def __getitem__(self, i): return self.items[i]\n    def __iter__(self): return iter(self.items)\n    def __contains__(self, v): return v == 7\n    def __call__(self, *a, **k): return (a, k)\n    def __repr__(self): return 'L!'\nl = L()\nresult = [len(l), l[1], list(l), 7 in l, l(1, x=2), repr(l), bool(l)]",
	"def deco(f):\n    def g(*a, **k):\n        return ['deco'] + f(*a, **k)\n    return g\ndef param(n):\n    def d(f):\n        return lambda *a: [n] + f(*a)\n    return d\n@deco\n@param(3)\ndef f(x):\n    return [x]\nresult = f(1)",
	"result = []\ntry:\n    {}['x']\nexcept KeyError as e:\n    result.append('key')\ntry:\n    raise ValueError('bad')\nexcept (TypeError, ValueError) as e:\n    result.append(str(e))\nfinally:\n    result.append('finally')\ntry:\n    [].pop\n    None.x\nexcept AttributeError:\n    result.append('attribute')\nelse:\n    result.append('never')",
	"def f():\n    try:\n        return 'body'\n    finally:\n        log.append('final')\nlog = []\nresult = [f(), log]",
	"if (n := 5) > 3:\n    result = [n, [y := 1, y + 1], [z for x in (1, 2) if (z := x * 2)]]",
	"def f():\n    global g\n    g = 5\nf()\nresult = g",
	"class C:\n    x = 1\n    y = x + 1\n    z = [x for _ in range(2)] if False else y\nresult = [C.x, C.y, C.z]",
	"from collections import OrderedDict\nclass M(OrderedDict):\n    def __getitem__(self, key):\n        content = super().__getitem__(key)\n        return (content, 1)\nm = M({'a': 2})\nresult = [m['a'], 'a' in m, list(m.keys())]",
	"from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2\n    def total(self): return self.x + self.y\nresult = [P(1).total(), P(1, y=5).y]",
	"from functools import partial\nf = partial(lambda a, b, c=0: (a, b, c), 1, c=5)\nresult = [f(2), f(2, c=7)]",
	"import math\nresult = [math.sqrt(16), math.log(8, 2), math.ceil(1.2), math.floor(1.8), math.pi]",
	"a = [1, 2, 3, 4]\na[1] += 10\nd = {'k': 1}\nd['k'] *= 5\nclass O: pass\no = O()\no.v = 1\no.v -= 3\nresult = [a, d, o.v]",
	"result = [(*(1, 2), 3), [*range(2), *'ab'], {**{'a': 1}, **{'a': 2}}, tuple(x for x in (1,)), (1,), ()]",
	"x = 10\ndef f(x=x):\n    def g():\n        return [x for _ in (1,)]\n    return g()\nresult = [f(), f(3), next((v for v in (1, 2) if v > 1), None), next(iter([]), 'none')]",
	// When objects go: each says so in a list.
	lives + "x = O('a')\nx = O('b')\nlog.append('bound')\ndel x\nresult = log",
	lives + "def f(a, b):\n    a = O('new')\n    log.append('set')\n    c = O('c')\n    return b\nresult = [f(O('1'), O('2')).name, log]",
	lives + "def f(*a, **k):\n    log.append('in')\nf(O('1'), O('2'), z=O('3'), y=O('4'))\nresult = log",
	lives + "def g(a):\n    a = None\n    log.append('g')\ndef f(*a):\n    g(*a)\n    log.append('f')\nf(O('1'))\nO('x').use(O('y'))\nresult = log",
	lives + "t = (O('1'), O('2'))\nl = [O('3'), O('4')]\nd = {'a': O('5'), 'b': O('6')}\ndel t, l, d\nresult = log",
	lives + "def f():\n    z = O('z')\n    y = O('y')\n    def inner():\n        return y\n    x = O('x')\n    y = O('y2')\nf()\nresult = log",
	lives + "def f():\n    for i in [O('1'), O('2')]:\n        log.append('body')\n    log.append('end')\nf()\nresult = log",
	lives + "a, b = O('1'), O('2')\na, b = O('3'), O('4')\nlog.append('pair')\n(O('5'), O('6'))[1]\nO('7').child.name\nresult = log",
	lives + "class P:\n    pass\np = P()\np.b = O('b')\np.a = O('a')\np.b = O('c')\ndel p\nresult = log",
	lives + "def f(x, y=None):\n    return [O('l%d' % i) for i in range(2)] and O('r') or x\nf(O('1')); f(O('2'), y=O('3'))\nresult = log",
	lives + "from functools import partial\nf = partial(lambda *a, **k: log.append('call'), O('1'), O('2'), k=O('3'))\nf(O('4'))\ndel f\nresult = log",
	lives + "def f():\n    try:\n        x = O('x')\n        raise ValueError(1)\n    except ValueError:\n        log.append('caught')\n    return 1\nresult = [f(), log]",
	"result = [list(map(str, [1, 2])), list(zip([1, 2], 'ab')), divmod(7, 2), [i for i in range(10, 0, -3)], len('äö'), str(1.0), str(None), str([1, 'a'])]",
}

// lives is a class of objects that say when they go.
const lives = "log = []\nclass O:\n    def __init__(self, name):\n        self.name = name\n        self.child = C(name)\n" +
	"    def __del__(self): log.append(self.name)\n    def use(self, other): log.append('use')\n" +
	"class C:\n    def __init__(self, name): self.name = '.' + name\n    def __del__(self): log.append(self.name)\n"

// TestPython compares what the evaluator makes of Python's language with what Python
// makes of it.
func TestPython(t *testing.T) {
	python := testmachine.Python(t)
	dir := t.TempDir()
	var names []string
	for i, s := range snippets {
		name := fmt.Sprintf("snippet%d", i)
		names = append(names, name)
		testmachine.WriteFile(t, filepath.Join(dir, name+".py"), s+"\n")
	}
	run := exec.Command(python, "-c", "import sys; sys.path.insert(0, sys.argv[1])\nfor n in sys.argv[2:]: print(repr(__import__(n).result))")
	run.Args = append(append(run.Args, dir), names...)
	want, err := run.Output()
	if err != nil {
		t.Fatal(err)
	}
	library := libraryOf(t, python, dir, names...)
	for i, line := range strings.Split(strings.TrimSpace(string(want)), "\n") {
		got, err := evaluated(library, names[i])
		if err != nil || got != line {
			t.Errorf("%s\n got %s, %v\nwant %s", snippets[i], got, err, line)
		}
	}
}

// evaluated is repr(result) of a module.
func evaluated(l *Library, name string) (out string, err error) {
	m := newMachine(l)
	defer m.catch(&err)
	return m.repr(m.module(name).(*namespace).load(m, "result")), nil
}

// libraryOf reads the source of modules.
func libraryOf(tb testing.TB, python, root string, modules ...string) *Library {
	tb.Helper()
	run := exec.Command(python, append([]string{"-c", Script, root}, modules...)...)
	run.Stderr = os.Stderr
	data, err := run.Output()
	if err != nil {
		tb.Fatal(err)
	}
	trees, err := ReadTrees(data)
	if err != nil {
		tb.Fatal(err)
	}
	return NewLibrary(trees)
}
