package pymodule

import (
	"slices"
	"strings"
	"sync"

	"memorymark/internal/models"
	"memorymark/internal/torch"
)

// Library is compiled source, shared by all processes.
type Library struct {
	trees   *Trees
	version version
	mu      sync.Mutex
	codes   map[string]*code
	idle    sync.Pool // of machines that have imported modules

	families map[string]*models.Family  // that were asked for
	facts    map[string]readFacts       // of configurations
	others   map[torch.Version]*Library // of other versions that the program was built with, nil for none
	tried    map[string]error           // what came of it, by configuration and how it runs
	keys     map[string][]string        // of configurations, by the names of their classes
	own      []string                   // modules that are a user's
}

// NewLibrary makes a library of syntax trees. A module is compiled when it is first
// imported.
func NewLibrary(trees *Trees) *Library {
	return &Library{
		trees: trees, version: parseVersion(trees.Version), codes: make(map[string]*code), families: make(map[string]*models.Family), facts: make(map[string]readFacts),
		others: make(map[torch.Version]*Library), tried: make(map[string]error), keys: make(map[string][]string),
	}
}

// of is the library of a version, nil if the program was built without.
func (l *Library) of(v models.Versions) *Library {
	if v == models.Reference || v == (models.Versions{}) {
		return l
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	other, ok := l.others[v.Transformers]
	if !ok {
		if trees, err := embeddedTrees(v.Transformers.String()); err == nil && trees != nil {
			other = NewLibrary(trees)
		}
		l.others[v.Transformers] = other
	}
	return other
}

func (l *Library) code(name string) *code {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.codes[name]; ok {
		return c
	}
	var c *code
	if t := l.trees.module(name); t != nil {
		c = compileModule(t, slices.Contains(l.own, name))
	}
	l.codes[name] = c
	return c
}

// Machine is a Python process.
type Machine struct {
	library      *Library
	t            *torch.Torch // of the model that is built or run
	imports      *torch.Torch // of what modules make when they are imported
	builtins     map[string]value
	types        map[string]*class // that Go has, by name
	modules      map[string]*namespace
	shims        map[string]func(m *Machine, module, name string) value
	placeholders map[string]*class
	frame        *frame
	stack        []value
	top, depth   int
	freeFrames   []*frame
	freeArgs     []*args
	unpacked     []*unpacked // of calls that are done
	setsModules  *builtin    // __setattr__ of modules
	torchState
}

// machine is a process for another model: one that an earlier model is done with, or a
// new one.
func (l *Library) machine() *Machine {
	if m, ok := l.idle.Get().(*Machine); ok {
		m.torchState, m.top, m.depth = torchState{}, 0, 0
		m.t = m.imports
		return m
	}
	return newMachine(l)
}

// newMachine starts a process.
func newMachine(l *Library) *Machine {
	m := &Machine{
		library: l, modules: make(map[string]*namespace), types: make(map[string]*class), placeholders: make(map[string]*class),
		stack: make([]value, 4096), imports: torch.New(torch.Device{}),
	}
	m.t = m.imports
	m.addTypes()
	m.builtins = m.pythonBuiltins()
	m.addTorch()
	return m
}

// namespace is a module.
type namespace struct {
	name    string
	names   map[string]value
	machine *Machine
	shim    func(name string) value // gives what Go has of it, nil for nothing
}

// lazyImport is a name of another module, which is not imported before it is used.
type lazyImport struct{ module, name string }

// load returns what a name stands for. It stays the module's.
func (n *namespace) load(m *Machine, name string) value {
	v, ok := n.names[name]
	if !ok {
		if n.shim != nil {
			v = n.shim(name)
		}
		if v == nil {
			if v = m.builtins[name]; v == nil || n.shim != nil {
				return n.missing(m, name)
			}
			return v
		}
		n.names[name] = v
	}
	if l, ok := v.(*lazyImport); ok {
		v = m.resolveImport(l)
		n.names[name] = v
	}
	return v
}

func (n *namespace) missing(m *Machine, name string) value {
	if n.shim != nil {
		return &unknown{n.name + "." + name}
	}
	if full := n.name + "." + name; m.library.trees.has(full) {
		return m.module(full)
	}
	panic(raise("NameError", "name '%s' is not defined", name))
}

// absolute is the name of a module that an import names, which may be relative.
func (n *namespace) absolute(from string) string {
	rest := strings.TrimLeft(from, ".")
	level := len(from) - len(rest)
	if level == 0 {
		return from
	}
	parts := strings.Split(n.name, ".")
	if t := n.machine.library.trees.module(n.name); t != nil && strings.HasSuffix(t.file, "__init__.py") {
		level--
	}
	parts = parts[:max(len(parts)-level, 0)]
	if rest != "" {
		parts = append(parts, rest)
	}
	return strings.Join(parts, ".")
}

// resolveImport is from module import name.
func (m *Machine) resolveImport(l *lazyImport) value {
	if shim := m.shims[l.module]; shim != nil {
		if v := shim(m, l.module, l.name); v != nil {
			return v
		}
	}
	if m.library.trees.has(l.module + "." + l.name) {
		return m.module(l.module + "." + l.name)
	}
	if m.library.trees.has(l.module) {
		if v := m.module(l.module).(*namespace).load(m, l.name); v != nil {
			return v
		}
	}
	if m.shims[l.module+"."+l.name] != nil {
		return m.module(l.module + "." + l.name)
	}
	if folder, ok := strings.CutPrefix(l.module, "transformers.models."); ok && !strings.Contains(folder, ".") {
		for _, kind := range []string{"configuration_", "modeling_"} { // what the folder's __init__.py imports
			if c := m.classIn(folder, kind, l.name); c != nil {
				return c
			}
		}
	}
	return &unknown{l.module + "." + l.name}
}

// replaced is a function of a module in the place of what the source has, nil for none.
func replaced(module, name string) value {
	switch {
	case module == "transformers.integrations.moe" && name == "_can_use_grouped_mm":
		return constantly(true) // package torch asks the card
	case name == "make_log_bucket_position":
		return &builtin{name, logBuckets}
	case module == "transformers.masking_utils" && (name == "_vmap_for_bhqkv" || name == "_vmap_expansion_sdpa"):
		return &builtin{name, mapsMasks}
	}
	return nil
}

// module imports a module: its body runs, once.
func (m *Machine) module(name string) value {
	if n := m.modules[name]; n != nil {
		return n
	}
	n := &namespace{name: name, names: make(map[string]value), machine: m}
	m.modules[name] = n
	if shim := m.shims[name]; shim != nil {
		n.shim = func(what string) value {
			if v := shim(m, name, what); v != nil {
				return v
			}
			if m.shims[name+"."+what] != nil {
				return m.module(name + "." + what)
			}
			return nil
		}
		return n
	}
	c := m.library.code(name)
	if c == nil {
		n.shim = func(what string) value {
			if m.shims[name+"."+what] != nil {
				return m.module(name + "." + what)
			}
			return nil
		}
		return n
	}
	m.importInto(n, c)
	for what := range n.names {
		if by := replaced(name, what); by != nil {
			n.names[what] = by
		}
	}
	return n
}

// importInto runs the body of a module.
func (m *Machine) importInto(n *namespace, c *code) {
	n.names["__name__"] = n.name
	f := &frame{m: m, code: c, globals: n, back: m.frame}
	m.frame = f
	c.body(f)
	m.frame = f.back
}
