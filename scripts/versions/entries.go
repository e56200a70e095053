package main

import (
	"debug/elf"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
)

// emulated are the names that belong to libraries whose place the emulated GPU
// takes. Of cuDNN and cuSPARSE, what fills descriptors and describes itself needs
// no device and stays their own, as do cuFile and cuSPARSELt.
var (
	emulated = regexp.MustCompile(`^(__cuda[A-Z]|cuda[A-Z]|cu[A-Z]|cublas|cudnn|cufft|cusolver|cusparse|nccl[A-Z]|nvml)`)
	itself   = regexp.MustCompile(`^cuFile|^cudnn\w+(Descriptor(Ex|_v\d)?|Version|Property|String|GroupCount|MathType)$|^cusparse(Lt\w+|\w*([Cc]reate|[Dd]estroy|Set|Get)\w*)$`)
)

// missingEntries are the entry points that PyTorch's libraries link with and
// the emulated GPU does not have. A call would reach a real library, which has
// no device, and cannot be trusted to fail by name.
func missingEntries(library, torch string) ([]string, error) {
	have, err := symbols(library, (*elf.File).DynamicSymbols)
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(torch, "lib", "*.so"))
	if err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, name := range names {
		wanted, err := imports(name)
		if err != nil {
			return nil, err
		}
		for _, symbol := range wanted {
			if emulated.MatchString(symbol) && !have[symbol] && !itself.MatchString(symbol) {
				missing[symbol] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing)), nil
}

// imports are the symbols that a library expects elsewhere.
func imports(name string) ([]string, error) {
	f, err := elf.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	list, err := f.ImportedSymbols()
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.Name
	}
	return out, err
}

func symbols(name string, list func(*elf.File) ([]elf.Symbol, error)) (map[string]bool, error) {
	f, err := elf.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	found, err := list(f)
	out := map[string]bool{}
	for _, s := range found {
		if s.Section != elf.SHN_UNDEF {
			out[s.Name] = true
		}
	}
	return out, err
}
