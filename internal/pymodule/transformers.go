package pymodule

import (
	"math"
	"strings"

	"memorymark/internal/torch"
)

// This file says what modules are Go's: Python's library, torch, and what of
// transformers is no model code.

// addTorch makes what PyTorch and transformers have.
func (m *Machine) addTorch() {
	m.dtype = torch.Float32
	m.addModules()
	for name, f := range dictMethods {
		m.types["dict"].attrs[name] = f
	}
	m.types["dict"].attrs["__getitem__"] = &builtin{"__getitem__", func(m *Machine, a *args) value { return m.item(m.itemsOf(a.pos[0]), a.pos[1]) }}
	m.types["dict"].attrs["__init__"] = &builtin{"__init__", func(m *Machine, a *args) value {
		return dictMethods["update"].call(m, a)
	}}
	m.addPretrained()
	m.addOutputs()
	m.shims = map[string]func(m *Machine, module, name string) value{
		"torch": torchName, "torch.nn": nnName, "torch.nn.functional": functionalName, "torch.nn.init": initializationName, "torch.optim": optimName, "torch.utils.data": dataName, "torch.cuda": cudaName, "random": seedName, "numpy.random": seedName, "torch.utils.checkpoint": checkpointName,
		"math": mathName, "functools": functoolsName, "dataclasses": dataclassesName, "typing": typingName, "collections": collectionsName,
		"numpy": numpyName, "operator": operatorName, "transformers.generation": generationName, "inspect": inspectName, "itertools": itertoolsName, "warnings": warningsName, "os": nothingName, "sys": nothingName,
		"torch.backends": nothingName, "torch.autograd": autogradName, "torch.autograd.function": autogradName, "torch.fft": nothingName, "torch._dynamo": dynamoName, "torch._dynamo._trace_wrapped_higher_order_op": dynamoName, "torch.fx": fxName, "torch.linalg": linalgName,
		"abc": abcName, "copy": copyName, "packaging.version": versionName, "packaging": nil, "torch.jit": jitName,
		"transformers.utils": utilsName, "transformers.utils.generic": utilsName, "transformers.utils.import_utils": utilsName,
		"transformers.utils.deprecation": utilsName, "transformers.utils.type_validators": utilsName, "transformers.utils.output_capturing": utilsName, "transformers.integrations": utilsName,
		"transformers.distributed.fsdp": utilsName, "transformers.integrations.hub_kernels": utilsName, "transformers.utils.logging": loggingName,
		"transformers.modeling_utils": modelingName, "transformers.configuration_utils": modelingName, "transformers.pytorch_utils": modelingName,
		"transformers.models.auto": autoName, autoFolder + "modeling_auto": autoName, autoFolder + "configuration_auto": autoName,
		"transformers.initialization": initializationName, "transformers.generation.continuous_batching.cache": pagedName, "transformers": modelingName, "collections.abc": typingName,
		"huggingface_hub.dataclasses": utilsName, "transformers.loss": nil,
	}
	for name, f := range m.shims {
		if f == nil {
			delete(m.shims, name)
		}
	}
}

// decorator is one that changes nothing, with arguments of its own or without.
var decorator = &builtin{"decorator", func(_ *Machine, a *args) value {
	if len(a.pos) == 1 && len(a.names) == 0 {
		switch a.pos[0].(type) {
		case *function, *class, *builtin, *method, *staticMethod, *classMethod:
			return hold(a.pos[0])
		}
	}
	return identity
}}

var identity = &builtin{"identity", func(_ *Machine, a *args) value { return hold(a.pos[0]) }}

func constantly(v value) *builtin {
	return &builtin{"constantly", func(*Machine, *args) value { return v }}
}

func torchName(m *Machine, _, name string) value {
	if d, ok := dtypes[name]; ok {
		return dtype(d)
	}
	switch name {
	case "Tensor":
		return m.types["Tensor"]
	case "inf":
		return math.Inf(1)
	case "nan":
		return math.NaN()
	case plainFormat:
		return plainFormat
	case "pi":
		return math.Pi
	case "_dynamo":
		return m.module("torch._dynamo")
	case "_check", "_assert":
		return constantly(none{})
	case "classes":
		panic(raise("RuntimeError", "Class xielu does not exist"))
	case "autograd":
		return m.module("torch.autograd")
	case "fft", "fx":
		return m.module("torch." + name)
	case "__version__":
		return m.t.Version.String()
	case "manual_seed":
		return constantly(none{})
	case "nn", "jit", "utils", "linalg", "optim", "cuda":
		return m.module("torch." + name)
	}
	if f := torchFunctions[name]; f != nil {
		return f
	}
	if f := tensorMethods[name]; f != nil { // torch.flatten(x) is x.flatten()
		return f
	}
	return nil
}

func nnName(m *Machine, _, name string) value {
	if name == "functional" || name == "init" {
		return m.module("torch.nn." + name)
	}
	if m.library.trees.has(composed) {
		if c, ok := m.module(composed).(*namespace).names[name].(*class); ok {
			return c
		}
	}
	if c := m.types[name]; c != nil {
		return c
	}
	return nil
}

// composed calls what nnSource has of a function.
func (m *Machine) composed(name string, a *args) value {
	if !m.library.trees.has(composed) {
		panic(failure("this %s is not known", name))
	}
	return m.invoke(m.module(composed).(*namespace).names[name], a)
}

// fxName is torch.fx, which is not used unless a model is traced.
func fxName(m *Machine, module, name string) value {
	if name == "Proxy" {
		return m.placeholder(&unknown{module + "." + name})
	}
	return nil
}

func functionalName(_ *Machine, _, name string) value {
	if f := nnFunctions[name]; f != nil {
		return f
	}
	return nil
}

func jitName(_ *Machine, _, name string) value {
	switch name {
	case "is_tracing", "is_scripting":
		return constantly(false)
	case "ignore", "unused", "export", "script_if_tracing":
		return decorator
	case "script":
		return scripted
	}
	return nil
}

// scripted is torch.jit.script. From its second run on a function is compiled, which leaves
// views and numbers on the CPU as they are. What the fuser makes of operators on the card
// (torch/csrc/jit/passes/tensorexpr_fuser.cpp) is not known.
var scripted = &builtin{"script", func(_ *Machine, a *args) value {
	f := hold(a.pos[0])
	return &builtin{"script", func(m *Machine, a *args) value {
		before := len(m.t.Trace().Events)
		out := m.invoke(f, a)
		if len(m.t.Trace().Events) != before {
			panic(failure("what torch.jit.script compiles of operators on the card is not known"))
		}
		return out
	}}
}}

// checkpointName is torch.utils.checkpoint, without re-entrance.
func checkpointName(_ *Machine, _, name string) value {
	if name != "checkpoint" {
		return nil
	}
	return &builtin{name, func(m *Machine, a *args) value {
		if a.get(-1, "use_reentrant") != false {
			panic(failure("checkpoint without use_reentrant=False is not known"))
		}
		kept := &args{pos: a.pos}
		for i, n := range a.names {
			if n != "use_reentrant" {
				kept.names, kept.named = append(kept.names, n), append(kept.named, a.named[i])
			}
		}
		if len(kept.names) > 0 {
			panic(failure("checkpoint with keywords is not known"))
		}
		return checkpoint(m, kept)
	}}
}

// dataName is torch.utils.data: datasets say themselves what they have.
func dataName(m *Machine, _, name string) value {
	if name == "Dataset" {
		return m.types["object"]
	}
	return nil
}

// cudaName is torch.cuda of a program that looks for a card.
func cudaName(_ *Machine, _, name string) value {
	switch name {
	case "is_available":
		return constantly(true)
	case "device_count":
		return constantly(int64(1))
	case "manual_seed", "manual_seed_all", "empty_cache":
		return constantly(none{})
	}
	return nil
}

// seedName is what seeds generators of numbers that decide nothing here.
func seedName(_ *Machine, _, name string) value {
	if name == "seed" {
		return constantly(none{})
	}
	return nil
}

// logger takes every message.
type logger struct{}

func (logger) attribute(*Machine, string) value { return constantly(none{}) }

func loggingName(_ *Machine, _, name string) value {
	if name == "get_logger" {
		return constantly(logger{})
	}
	return nil
}

func utilsName(m *Machine, _, name string) value {
	switch name {
	case "logging":
		return m.module("transformers.utils.logging")
	case "is_torch_available":
		return constantly(true)
	case "is_tracing", "is_torchdynamo_compiling", "is_torchdynamo_exporting", "is_flash_attention_requested", "is_jit_tracing", "is_torch_fx_proxy":
		return constantly(false)
	case "is_torch_greater_or_equal", "is_torch_less_or_equal":
		return &builtin{name, func(m *Machine, a *args) value {
			order := parseVersion(m.t.Version.String()).compare(parseVersion(m.text(a.pos[0])))
			return order == 0 || order > 0 == (name == "is_torch_greater_or_equal")
		}}
	case "get_torch_version":
		return &builtin{name, func(m *Machine, _ *args) value { return m.t.Version.String() }}
	case "use_experts_implementation":
		return m.resolveImport(&lazyImport{"transformers.integrations.moe", name})
	case "capture_outputs":
		return captureOutputs
	case "auto_docstring", "can_return_tuple", "strict", "no_inherit_decorator":
		return decorator
	case "accepts_precomputed_kwargs":
		return &builtin{name, func(m *Machine, a *args) value {
			return &builtin{name, precomputed(m.text(a.need(0, "modality"))).wrap}
		}}
	case "use_kernel_func_from_hub_with_fallback", "filter_out_non_signature_kwargs":
		return constantly(identity)
	case "is_fsdp_managed_module":
		return constantly(false)
	case "requires_backends":
		return constantly(none{})
	case "split_attention_implementation":
		return &builtin{name, func(_ *Machine, a *args) value { return newTuple(false, hold(a.pos[0])) }}
	case "remap_legacy_layer_types":
		return &builtin{name, func(m *Machine, a *args) value { return newList(m.listOf(a.pos[0])...) }}
	case "torch_int":
		return m.types["int"]
	case "torch_float":
		return m.types["float"]
	case "use_kernel_forward_from_hub", "use_kernelized_func", "use_kernel_func_from_hub", "deprecate_kwarg", "requires", "add_start_docstrings", "add_start_docstrings_to_model_forward",
		"replace_return_docstrings", "add_code_sample_docstrings", "add_end_docstrings":
		return constantly(identity)
	case "positive_int_field": // a field with a default
		return &builtin{name, func(_ *Machine, a *args) value { return hold(a.or(-1, "default", none{})) }}
	case "interval":
		return constantly(&builtin{name, func(_ *Machine, a *args) value { return hold(a.need(-1, "default")) }})
	case "merge_with_config_defaults", "check_model_inputs":
		decorates := &builtin{name, func(_ *Machine, a *args) value { return withDefaults(hold(a.pos[0])) }}
		return &builtin{name, func(m *Machine, a *args) value {
			if len(a.pos) == 0 { // options, before transformers 5
				return decorates
			}
			return decorates.call(m, a)
		}}
	case "maybe_autocast":
		return &builtin{name, func(_ *Machine, a *args) value { return castRegion(a) }}
	case "ModelOutput", "GeneralInterface", "OutputRecorder":
		return m.types[name]
	case "torch_compilable_check":
		return constantly(none{})
	}
	if strings.HasPrefix(name, "is_") && strings.HasSuffix(name, "_available") {
		return constantly(false)
	}
	return nil
}

// withDefaults is merge_with_config_defaults: use_cache of the configuration, where
// the call does not say.
func withDefaults(f value) value {
	return &builtin{"wrapper", func(m *Machine, a *args) value {
		self := a.pos[0].(*instance)
		config, _ := self.fields.get("config")
		given := a.get(-1, "use_cache")
		if given == nil || given == (none{}) {
			given, _ = m.optional(config, "use_cache")
		}
		if on, _ := m.optional(self, "gradient_checkpointing"); on == true && m.trains(self) && given == true {
			given = false
		}
		out := &args{pos: a.pos}
		for i, n := range a.names {
			if n != "use_cache" {
				out.names, out.named = append(out.names, n), append(out.named, a.named[i])
			}
		}
		if given != nil && given != (none{}) {
			out.names, out.named = append(out.names, "use_cache"), append(out.named, given)
		}
		return m.invoke(f, out)
	}}
}

func modelingName(m *Machine, module, name string) value {
	switch name {
	case "PreTrainedModel", "Conv1D", "AttentionInterface":
		return m.types[name]
	case "remap_legacy_layer_types":
		return utilsName(m, "", name)
	case "compile_compatible_method_lru_cache":
		return constantly(&builtin{name, func(_ *Machine, a *args) value { return remembered(hold(a.pos[0])) }})
	case "PreTrainedConfig", "PretrainedConfig": // so called before transformers 5
		return m.configurationClass()
	case "strict":
		return decorator
	case "ALL_LAYERNORM_LAYERS":
		return m.source("transformers.pytorch_utils").names[name]
	case "is_torch_greater_or_equal_than_2_2":
		return true
	case "layer_type_validation":
		return constantly(none{})
	case "ALL_ATTENTION_FUNCTIONS":
		return &instance{refs: refs{1}, class: m.types["AttentionInterface"]}
	case "slice_logits_to_keep":
		return m.source("transformers.modeling_utils").names[name]
	case "apply_chunking_to_forward":
		return &builtin{name, func(m *Machine, a *args) value {
			if number(a.pos[1]) > 0 {
				panic(failure("forward in chunks is not known"))
			}
			return m.invoke(a.pos[0], &args{pos: a.pos[3:]})
		}}
	}
	if module == "transformers" {
		return m.exported(name)
	}
	return nil
}

// exported is a class that transformers has at its top, nil if there is none.
func (m *Machine) exported(name string) value {
	if strings.HasPrefix(name, "Auto") {
		return autoName(m, autoFolder, name)
	}
	kind := "modeling_"
	if strings.HasSuffix(name, "Config") {
		kind = "configuration_"
	}
	if c := m.classAnywhere(kind, name); c != nil {
		return c
	}
	return nil
}

// pagedName has the cache of a server, which no training loop has.
func pagedName(m *Machine, module, name string) value {
	return m.placeholder(&unknown{module + "." + name})
}

// initializationName is transformers.initialization: what fills tensors in place.
func initializationName(_ *Machine, _, name string) value {
	switch name {
	case "_calculate_fan_in_and_fan_out":
		return &builtin{name, func(*Machine, *args) value { return newTuple(1.0, 1.0) }}
	case "calculate_gain":
		return constantly(1.0)
	case "orthogonal_":
		return &builtin{name, func(m *Machine, a *args) value {
			x := a.need(0, "tensor").(*tensor)
			if !x.host && !m.t.IsOnCPU() {
				m.t.FillOrthogonal(in(x))
			}
			return hold(x)
		}}
	}
	return &builtin{name, func(_ *Machine, a *args) value {
		if len(a.pos) == 0 {
			return none{}
		}
		return hold(a.pos[0])
	}}
}
