package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Key is one key of a file as its tags and the registries describe it: what the loader
// takes, what the schema publishes and what docs/run-file.md says are the same words.
type Key struct {
	Path    string   // as --set has it; [] stands for every item of a list
	Type    string   // in words
	Allowed string   // range or pattern, without the type; empty: any
	Values  []string // those that it takes; nil: any in Allowed
	Zero    bool     // 0 is in its range
	Meaning string
	Only    []Condition // all of them must hold for the key to be read
	Also    string      // what reads it even if they do not; empty: nothing
	// Block says that the key holds further keys, which follow.
	Block bool
	// Field leads from the file to the value; nil: it is in a list, or in a block that may
	// be missing.
	Field []int

	block, name string      // the type that it stands in, and its name there
	own         []Condition // of Only, those that the blocks around it do not have
}

// Condition is another key that must have one of some values.
type Condition struct {
	Path   string
	Values []string
}

// Keys are all keys of a file, in its order, from the type that it is decoded into.
func Keys(file any) []Key {
	t := reflect.TypeOf(file)
	k := keys{run: t == reflect.TypeFor[Run](), inside: map[reflect.Type]bool{}}
	k.add(t, "", nil, []int{})
	return k.all
}

type keys struct {
	all    []Key
	run    bool                  // the file is a run file, whose keys the registries know
	inside map[reflect.Type]bool // blocks that may hold themselves are walked once
}

func (k *keys) add(t reflect.Type, path string, outer []Condition, at []int) {
	k.inside[t] = true
	defer delete(k.inside, t)
	for _, f := range reflect.VisibleFields(t) {
		name := keyOf(f)
		if name == "" {
			continue
		}
		key := Key{Path: join(path, name), Meaning: f.Tag.Get("jsonschema_description"), Also: f.Tag.Get("also"), Only: slices.Concat(outer, conditions(f.Tag, path))}
		limits := rangeOf(f.Tag)
		key.Type, key.Values, key.Allowed = typeOf(f), limits.enum, limits.within()
		key.Zero = limits.holds(0)
		if f.Type == reflect.TypeFor[Lambda]() {
			key.Allowed = "" // its type says so
		}
		if k.run {
			key.Only = append(key.Only, readers(key.Path)...)
		}
		key.block, key.name, key.own = t.Name(), name, key.Only[len(outer):]
		if at != nil {
			key.Field = append(slices.Clone(at), f.Index...)
		}
		item, list, there := f.Type, false, key.Field
		for item.Kind() == reflect.Slice || item.Kind() == reflect.Pointer {
			item, list, there = item.Elem(), list || item.Kind() == reflect.Slice, nil
		}
		key.Block = item.Kind() == reflect.Struct && f.Type != reflect.TypeFor[yaml.MapSlice]()
		k.all = append(k.all, key)
		switch {
		case !key.Block || k.inside[item]:
		case list:
			k.add(item, key.Path+"[]", key.Only, nil)
		default:
			k.add(item, key.Path, key.Only, there)
		}
	}
}

// readWith begins what a schema says of a key's conditions.
const readWith = " (read with "

// readWith is what the key is read with, beside what its block is; empty: with all.
func (k Key) readWith() string {
	parts := make([]string, 0, len(k.own)+1)
	for _, c := range k.own { // one in the same block goes by its name: blocks may be used twice
		beside := strings.TrimPrefix(c.Path, strings.TrimSuffix(k.Path, k.name))
		parts = append(parts, beside+" "+strings.Join(c.Values, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	if k.Also != "" {
		parts = append(parts, "or "+k.Also)
	}
	return readWith + strings.Join(parts, "; ") + ")"
}

// conditions are those of a field's tag: other keys and the values that they must have,
// as in `only:"algorithm.mode=sound;data.standardise=public|paid"`. A path that begins
// with a dot is of a key in the same block.
func conditions(tag reflect.StructTag, block string) []Condition {
	var out []Condition
	for _, one := range strings.FieldsFunc(tag.Get("only"), func(r rune) bool { return r == ';' }) {
		path, values, _ := strings.Cut(one, "=")
		if rest, ok := strings.CutPrefix(path, "."); ok {
			path = join(block, rest)
		}
		out = append(out, Condition{path, strings.Split(values, "|")})
	}
	return out
}

// readers are the choices that say they read a key of a run file, where others of their
// registry do not: a key that nobody of a registry names is read by all of it.
func readers(path string) []Condition {
	var out []Condition
	for _, r := range []struct {
		at, block string // block is what comes before the keys that are named
		names     []string
		keys      func(name string) []string
	}{
		{"data.kind", "data.", DataKinds(), func(name string) []string { return dataKinds[name].Keys }},
		{"algorithm.kind", "", registered("method"), func(name string) []string { return methodKinds[name].Keys }},
		{"privacy.protects", "", registered("protection"), func(name string) []string { return protectionKinds[name].Keys }},
		{"model.layers[].kind", "model.layers[].", registered("layer"), func(name string) []string { return layerKinds[name] }},
	} {
		key, ok := strings.CutPrefix(path, r.block)
		who := slices.DeleteFunc(r.names, func(name string) bool { return !slices.Contains(r.keys(name), key) })
		if ok && len(who) > 0 {
			out = append(out, Condition{r.at, who})
		}
	}
	return out
}

// typeOf is what a field takes, in words.
func typeOf(f reflect.StructField) string {
	switch f.Type {
	case reflect.TypeFor[yaml.MapSlice]():
		return "block of paths, each with a list of values"
	case reflect.TypeFor[Lambda]():
		return "number from 0, `inf` or `auto`"
	case reflect.TypeFor[*float64]():
		return "number, or `null`"
	}
	one, _ := typeWords(f.Type)
	return one
}

// typeWords are a type's words for one value and for many.
func typeWords(t reflect.Type) (one, many string) {
	switch t.Kind() {
	case reflect.Pointer:
		return typeWords(t.Elem())
	case reflect.Slice:
		_, many := typeWords(t.Elem())
		return "list of " + many, "lists of " + many
	case reflect.Struct:
		return "block", "blocks"
	case reflect.Bool:
		return "`true` or `false`", "truths"
	case reflect.Int, reflect.Uint64:
		return "whole number", "whole numbers"
	case reflect.Float64:
		return "number", "numbers"
	}
	if t == reflect.TypeFor[Cell]() {
		return "text, number, `true` or `false`", "values: text, numbers, `true` or `false`"
	}
	return "text", "texts"
}

// within is a range or a pattern in words; empty: any.
func (r limits) within() string {
	var out []string
	if len(r.enum) == 0 && !(math.IsInf(r.min, -1) && math.IsInf(r.max, 1)) {
		out = append(out, r.words(""))
	}
	if r.pattern != nil {
		out = append(out, fmt.Sprintf("fits `%s`", r.pattern))
	}
	if r.length > 0 {
		out = append(out, fmt.Sprintf("at most %d characters", r.length))
	}
	return strings.Join(out, ", ")
}
