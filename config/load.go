package config

import (
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Setting is one --set path=value.
type Setting struct{ Path, Value string }

// ParseSetting splits path=value.
func ParseSetting(s string) (Setting, error) {
	path, value, ok := strings.Cut(s, "=")
	if !ok || path == "" {
		return Setting{}, fmt.Errorf("--set %q: want path=value, for example --set algorithm.rounds=100", s)
	}
	return Setting{path, value}, nil
}

// File is a loaded run file that remembers where every value stood.
type File struct {
	Run       Run
	positions map[string]position
	// unread marks values of the wrong type or range: a later check of the same
	// path would only repeat the fault.
	unread map[string]bool
}

type position struct{ line, column int }

// Load reads a run file over the defaults, then the settings. It returns every
// unknown key, wrong type and value out of range at once, as Faults.
func Load(text []byte, settings ...Setting) (*File, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	w := &walker{positions: map[string]position{"": {1, 1}}, unread: map[string]bool{}}
	overrides := w.parseSettings(settings)

	run := defaults(w.peek(root, overrides))
	v := reflect.ValueOf(&run).Elem()
	if root != nil {
		w.fill(v, root, "", "")
	}
	for _, o := range overrides {
		w.set(v, o)
	}
	settleMode(w, &run, root, overrides)
	if settle := dataKinds[run.Data.Kind].Settle; settle != nil {
		settle(&run, func(path string) bool { _, given := w.positions[path]; return given })
	}
	if run.Name == "" {
		run.Name = run.Algorithm.Kind
	}
	f := &File{Run: run, positions: w.positions, unread: w.unread}
	return f, f.Located(w.faults)
}

// Empty says that a file has no key: it holds nothing, or comments.
func Empty(text []byte) bool {
	root, err := parse(text)
	if err != nil || root == nil {
		return err == nil
	}
	values, ok := root.(*ast.MappingNode)
	return ok && len(values.Values) == 0
}

func parse(text []byte) (ast.Node, error) {
	all, err := tokens(text)
	if err != nil {
		return nil, err
	}
	tree, err := parser.Parse(all, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		fault := Fault{Line: 1, Column: 1, Message: "not YAML: " + yaml.FormatError(err, false, false)}
		var syntax yaml.Error
		if errors.As(err, &syntax) && syntax.GetToken() != nil {
			p := syntax.GetToken().Position
			fault.Line, fault.Column, fault.Message = p.Line, p.Column, "not YAML: "+syntax.GetMessage()
		}
		return nil, Faults{fault}
	}
	var bodies []ast.Node
	for _, doc := range tree.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.NullType && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, nil
	case 1:
		return bodies[0], nil
	}
	p := bodies[1].GetToken().Position
	return nil, Faults{{Line: p.Line, Column: p.Column, Message: "a run file holds one document; this is a second one"}}
}

// settleMode lets algorithm.mode and privacy.accounting name one another.
func settleMode(w *walker, run *Run, root ast.Node, overrides []override) {
	mode, hasMode := w.lookup(root, overrides, "algorithm.mode")
	accounting, hasAccounting := w.lookup(root, overrides, "privacy.accounting")
	switch {
	case hasMode && hasAccounting && mode != accounting:
		w.fault("privacy.accounting", "is %q but algorithm.mode is %q: give one of them, or the same", accounting, mode)
	case hasMode:
		run.Privacy.Accounting = run.Algorithm.Mode
	case hasAccounting:
		run.Algorithm.Mode = run.Privacy.Accounting
	}
}

// Located gives faults their positions, drops those whose value was never read,
// and sorts them. It returns nil if none is left.
func (f *File) Located(faults Faults) error {
	var out Faults
	for _, x := range faults {
		if x.Line == 0 && x.Column == 0 {
			x.Line, x.Column = f.position(x.Path)
		}
		out = append(out, x)
	}
	if len(out) == 0 {
		return nil
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return out
}

// Check runs the packages' own checks and locates what they find. Faults at
// values that Load already refused are not repeated.
func (f *File) Check(checks ...func(Run) Faults) Faults {
	var fresh Faults
	for _, check := range checks {
		for _, x := range check(f.Run) {
			if !f.unread[x.Path] {
				fresh = append(fresh, x)
			}
		}
	}
	if err := f.Located(fresh); err != nil {
		return err.(Faults)
	}
	return nil
}

// position is that of the value, or of the nearest block that holds it.
func (f *File) position(path string) (line, column int) {
	for {
		if p, ok := f.positions[path]; ok {
			return p.line, p.column
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return 1, 1
		}
		path = path[:i]
	}
}

// ResolveIn is Resolve for a file in a folder: its paths are seen from there.
func ResolveIn(folder string, text []byte, set []string, checks ...func(Run) Faults) (Run, error) {
	run, err := Resolve(text, set, checks...)
	if err != nil {
		return run, err
	}
	if run.Data, err = run.Data.Under(folder); err != nil {
		return run, err
	}
	return run, under(folder, &run.Model.Start)
}

// Resolve loads a run file with --set values and the packages' own checks, and
// returns every fault at once.
func Resolve(text []byte, set []string, checks ...func(Run) Faults) (Run, error) {
	var settings []Setting
	for _, s := range set {
		one, err := ParseSetting(s)
		if err != nil {
			return Run{}, Faults{{Message: err.Error()}}
		}
		settings = append(settings, one)
	}
	f, err := Load(text, settings...)
	if f == nil {
		return Run{}, err
	}
	var faults Faults
	errors.As(err, &faults)
	faults = append(faults, f.Check(checks...)...)
	if len(faults) > 0 {
		return Run{}, f.Located(faults)
	}
	return f.Run, nil
}
