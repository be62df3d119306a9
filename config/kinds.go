package config

import (
	"maps"
	"slices"
)

// DataKind is a data set as the run file knows it: a name that data.kind may have, and
// what a file on it need not say. Package data registers one beside every loader.
type DataKind struct {
	Name string
	// Method is the papers' own for such data, where a file names none; empty:
	// group-private.
	Method string
	// OwnTest says that every client always holds out part of its own examples: a silo.
	OwnTest bool
	// Keys are those of the data block that it reads beside its kind. Others are faults.
	Keys []string
	// Defaults are those of its own keys that resolved files of all kinds spell out;
	// nil: none. A key that is left out of other kinds' files gets its value in Settings.
	Defaults func(d *Data)
	// Settings are the papers' for runs on the data; method and mode are set already.
	// nil: those that all data share.
	Settings func(r *Run)
	// Settle is what follows from the data block as the file has it; given says whether
	// the file says anything at a path itself. nil: nothing.
	Settle func(r *Run, given func(path string) bool)
}

var dataKinds = map[string]DataKind{}

// RegisterData makes a data set known to run files and their schema. Two of one name
// are a mistake in the program. It is called while packages are initialised.
func RegisterData(k DataKind) {
	if _, twice := dataKinds[k.Name]; twice || k.Name == "" {
		panic("config: no name for a kind of data, or one for two: " + k.Name)
	}
	dataKinds[k.Name] = k
}

// DataKinds are the names that data.kind may have, sorted.
func DataKinds() []string { return slices.Sorted(maps.Keys(dataKinds)) }

// Choice is a method or a protection as the run file knows it: a name, and what it needs
// otherwise than the data's papers have it. Packages below fl register them.
type Choice struct {
	Name string
	// Keys are paths of the run file that it reads and not all methods, or protections,
	// do: a block's stands for all of the block. What nobody names is read by all.
	Keys     []string
	Settings func(r *Run) // nil: nothing
}

var methodKinds, protectionKinds = map[string]Choice{}, map[string]Choice{}

// RegisterMethod makes a name known that algorithm.kind may have.
func RegisterMethod(c Choice) { methodKinds[c.Name] = c }

// RegisterProtection makes a name known that privacy.protects may have.
func RegisterProtection(c Choice) { protectionKinds[c.Name] = c }

var layerKinds = map[string][]string{} // with the keys that each reads

// RegisterLayer makes a name known that a layer's kind may have, and the keys of a layer
// that it reads beside its kind. Two of one name are a mistake in the program.
func RegisterLayer(name string, keys ...string) {
	if _, twice := layerKinds[name]; twice || name == "" {
		panic("config: no name for a kind of layer, or one for two: " + name)
	}
	layerKinds[name] = keys
}

// registered are the names of a registry: a field that a registry fills names it in its
// tag.
func registered(registry string) []string {
	switch registry {
	case "data":
		return DataKinds()
	case "method":
		return slices.Sorted(maps.Keys(methodKinds))
	case "layer":
		return slices.Sorted(maps.Keys(layerKinds))
	case "protection":
		return slices.Sorted(maps.Keys(protectionKinds))
	}
	return nil
}
