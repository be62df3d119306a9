package manual

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/config"
)

// deciders are the keys that the defaults of others follow from, each also from those
// before it.
var deciders = [...]string{"data.kind", "algorithm.mode", "algorithm.kind", "privacy.protects"}

// choice is a value of every decider; empty: the file does not say.
type choice [len(deciders)]string

// file is the shortest run file that makes the choice.
func (c choice) file() []byte {
	entry := func(key, value string) string {
		if value == "" {
			return ""
		}
		return key + ": " + value + ", "
	}
	return fmt.Appendf(nil, "data: {%s}\nalgorithm: {%s%s}\nprivacy: {%s}\n",
		entry("kind", c[0]), entry("mode", c[1]), entry("kind", c[2]), entry("protects", c[3]))
}

// resolved is what run files have that make a choice and say nothing else.
type resolved map[choice]config.Run

// resolve loads a run file for every value of the first deciders, none of them to all.
func resolve(keys []config.Key) (resolved, error) {
	all, last := resolved{}, []choice{{}}
	for at := 0; ; at++ {
		for _, c := range last {
			f, err := config.Load(c.file())
			if err != nil {
				return nil, fmt.Errorf("defaults of %v: %w", c, err)
			}
			all[c] = f.Run
		}
		if at == len(deciders) {
			return all, nil
		}
		var next []choice
		for _, c := range last {
			for _, v := range keyAt(keys, deciders[at]).Values {
				c[at] = v
				next = append(next, c)
			}
		}
		last = next
	}
}

// keyAt is the key with a path; a zero one if there is none.
func keyAt(keys []config.Key, path string) config.Key {
	if i := slices.IndexFunc(keys, func(k config.Key) bool { return k.Path == path }); i >= 0 {
		return keys[i]
	}
	return config.Key{}
}

// defaultsOf are a key's by choice: of those that it is read with, and, if it decides
// itself, that name the deciders before it alone.
func (p *page) defaultsOf(k config.Key) map[choice]string {
	named := len(deciders)
	if own := slices.Index(deciders[:], k.Path); own >= 0 {
		named = own
	}
	only := p.conditions(k)
	out := map[choice]string{}
	for c, run := range p.defaults {
		fits := (named == len(deciders) || c[named] == "") && (named == 0 || c[named-1] != "")
		for _, o := range only {
			i := slices.Index(deciders[:], o.Path)
			fits = fits && (i < 0 || i >= named || slices.Contains(o.Values, c[i]))
		}
		if fits {
			out[c] = shown(reflect.ValueOf(run).FieldByIndex(k.Field))
		}
	}
	return out
}

// conditions are the key's, and those of the keys that they are about: a key that is read
// with another is read where that one is.
func (p *page) conditions(k config.Key) []config.Condition {
	out := slices.Clone(k.Only)
	for i := 0; i < len(out); i++ {
		if slices.IndexFunc(out[:i], func(c config.Condition) bool { return c.Path == out[i].Path }) < 0 {
			out = append(out, keyAt(p.run, out[i].Path).Only...)
		}
	}
	return out
}

// shown is a value as a run file writes it.
func shown(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "`null`"
		}
		return shown(v.Elem())
	case reflect.Slice:
		if v.Len() == 0 {
			return "empty"
		}
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = strings.Trim(shown(v.Index(i)), "`")
		}
		return "`[" + strings.Join(parts, ", ") + "]`"
	case reflect.Float64:
		return "`" + strconv.FormatFloat(v.Float(), 'g', -1, 64) + "`"
	case reflect.String:
		if v.String() == "" {
			return "empty"
		}
	}
	return fmt.Sprintf("`%v`", v.Interface())
}

// rule says which default a key has with some values of the deciders.
type rule struct {
	with    [len(deciders)][]string // nil: any
	becomes string
}

// rules are a usual default and those that differ from it: every one of them is true by
// itself, and what none of them is about has the usual one.
func rules(defaults map[choice]string) (usual string, others []rule) {
	count := map[string]int{}
	for _, v := range defaults {
		count[v]++
	}
	for v, n := range count {
		if n > count[usual] || n == count[usual] && v < usual {
			usual = v
		}
	}
	told := map[choice]bool{}
	for size := 1; size <= len(deciders); size++ {
		for _, which := range subsets(size) {
			others = append(others, tell(defaults, usual, which, told)...)
		}
	}
	return usual, merged(others)
}

// subsets are the sets of so many deciders, as bits.
func subsets(size int) (out []int) {
	for bits := range 1 << len(deciders) {
		n := 0
		for i := range deciders {
			n += bits >> i & 1
		}
		if n == size {
			out = append(out, bits)
		}
	}
	return out
}

// tell finds the values of some deciders that settle a default which is not told yet.
func tell(defaults map[choice]string, usual string, which int, told map[choice]bool) (out []rule) {
	groups := map[choice][]choice{}
	for c := range defaults {
		part := choice{}
		for i := range c {
			if which>>i&1 == 1 {
				part[i] = c[i]
			}
		}
		groups[part] = append(groups[part], c)
	}
	parts := make([]choice, 0, len(groups))
	for part := range groups {
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b choice) int { return slices.Compare(a[:], b[:]) })
	for _, part := range parts {
		becomes, same, fresh := defaults[groups[part][0]], true, false
		for _, c := range groups[part] {
			same = same && defaults[c] == becomes
			fresh = fresh || !told[c]
		}
		if !same || !fresh || becomes == usual {
			continue
		}
		r := rule{becomes: becomes}
		for i, v := range part {
			if which>>i&1 == 1 {
				r.with[i] = []string{v}
			}
		}
		for _, c := range groups[part] {
			told[c] = true
		}
		out = append(out, r)
	}
	return out
}

// merged joins rules of one default that differ in the values of one decider.
func merged(all []rule) []rule {
	for i := 0; i < len(all); i++ {
		for j := i + 1; j < len(all); j++ {
			if at := differ(all[i], all[j]); at >= 0 {
				all[i].with[at] = slices.Sorted(slices.Values(slices.Concat(all[i].with[at], all[j].with[at])))
				all = slices.Delete(all, j, j+1)
				i, j = -1, len(all) // from the start: the joined one may fit others
			}
		}
	}
	slices.SortStableFunc(all, func(a, b rule) int {
		return cmp.Compare(a.size(), b.size())
	})
	return all
}

func (r rule) size() (n int) {
	for _, w := range r.with {
		if w != nil {
			n++
		}
	}
	return n
}

// differ is the one decider that two rules of the same default differ in; -1: they differ
// otherwise.
func differ(a, b rule) int {
	if a.becomes != b.becomes {
		return -1
	}
	at := -1
	for i := range deciders {
		if slices.Equal(a.with[i], b.with[i]) {
			continue
		}
		if at >= 0 || a.with[i] == nil || b.with[i] == nil {
			return -1
		}
		at = i
	}
	return at
}

// plainDefault is a default that follows from nothing else.
func plainDefault(k config.Key, value string) string {
	switch {
	case value == "`0`" && !k.Zero:
		return "Must be given"
	case value == "empty" && !strings.Contains(k.Meaning, "empty: "):
		return "No default"
	}
	return "Default " + value
}

// defaultOf is a key's default in words; empty for blocks, and within lists, where
// what is left out is as the key's meaning says.
func (p *page) defaultOf(k config.Key) string {
	if k.Block || k.Field == nil {
		return ""
	}
	if k.Path == "name" {
		return "Default: `algorithm.kind`"
	}
	usual, others := rules(p.defaultsOf(k))
	text := plainDefault(k, usual)
	for _, r := range others {
		text += "; " + r.becomes
		join := " with "
		for i, values := range r.with {
			if values != nil {
				text += join + p.who(config.Condition{Path: deciders[i], Values: values})
				join = " and "
			}
		}
	}
	return text
}
