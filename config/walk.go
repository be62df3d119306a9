package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// walker fills a Run from a YAML tree and collects every fault on the way.
type walker struct {
	positions map[string]position
	unread    map[string]bool
	faults    Faults
	override  bool // values come from --set: positions are 0
}

type override struct {
	path string
	node ast.Node
}

func (w *walker) at(n ast.Node) position {
	if w.override || n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return position{}
	}
	p := n.GetToken().Position
	return position{p.Line, p.Column}
}

func (w *walker) fault(path, format string, args ...any) {
	p := w.positions[path]
	w.unread[path] = true
	w.faults = append(w.faults, Fault{path, p.line, p.column, fmt.Sprintf(format, args...)})
}

// parseSettings reads the values of --set as YAML.
func (w *walker) parseSettings(settings []Setting) []override {
	var out []override
	for _, s := range settings {
		node, err := parse([]byte(s.Value))
		if err != nil {
			w.unknown(s.Path, fmt.Sprintf("--set value %q is not YAML", s.Value))
			continue
		}
		out = append(out, override{s.Path, node})
	}
	return out
}

// set applies one --set.
func (w *walker) set(v reflect.Value, o override) {
	w.override = true
	defer func() { w.override = false }()
	prefix, tag := "", reflect.StructTag("")
	for _, key := range strings.Split(o.path, ".") {
		if v.Kind() != reflect.Struct {
			w.unknown(o.path, fmt.Sprintf("%s has no part %q: it is a value", prefix, key))
			return
		}
		field, ok := fieldNamed(reflect.VisibleFields(v.Type()), key)
		if !ok {
			w.unknown(o.path, unknownKey(key, v))
			return
		}
		v, tag = v.FieldByIndex(field.Index), field.Tag
		prefix = join(prefix, key)
	}
	w.fill(v, o.node, o.path, tag)
}

func (w *walker) unknown(path, message string) {
	w.positions[path] = position{}
	w.fault(path, "%s", message)
}

// peek finds the values that the defaults depend on.
func (w *walker) peek(root ast.Node, overrides []override) (kind, algorithm, mode, protects string) {
	kind, algorithm, mode = usualData, "", "paper"
	if s, ok := w.lookup(root, overrides, "data.kind"); ok {
		kind = s
	}
	if s, ok := w.lookup(root, overrides, "privacy.accounting"); ok && s == "sound" {
		mode = s
	}
	if s, ok := w.lookup(root, overrides, "algorithm.mode"); ok {
		mode = s
	}
	if s, ok := w.lookup(root, overrides, "algorithm.kind"); ok {
		algorithm = s
	}
	protects, _ = w.lookup(root, overrides, "privacy.protects")
	return kind, algorithm, mode, protects
}

// lookup is the text at a path, settings first, if it is a plain scalar there.
func (w *walker) lookup(root ast.Node, overrides []override, path string) (string, bool) {
	for i := len(overrides) - 1; i >= 0; i-- {
		if overrides[i].path == path {
			s, ok := overrides[i].node.(*ast.StringNode)
			if !ok {
				return "", false
			}
			return s.Value, true
		}
	}
	node := root
	for _, key := range strings.Split(path, ".") {
		var next ast.Node
		for _, pair := range pairs(node) {
			if pair.Key.String() == key {
				next = pair.Value
			}
		}
		node = next
	}
	s, ok := node.(*ast.StringNode)
	if !ok {
		return "", false
	}
	return s.Value, true
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// fill sets v from node; tag carries the field's range.
func (w *walker) fill(v reflect.Value, node ast.Node, path string, tag reflect.StructTag) {
	if path != "" {
		w.positions[path] = w.at(node)
	}
	delete(w.unread, path)
	switch n := node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.TagNode:
		w.fault(path, "anchors, aliases and tags are not supported: write the value out")
		return
	case nil, *ast.NullNode:
		w.fillNull(v, path)
		return
	case *ast.NanNode:
		w.fault(path, "is not a number; %s", allowed(tag, "a finite number"))
		return
	case *ast.InfinityNode:
		w.fault(path, "is infinite (%s); %s", n.String(), allowed(tag, "a finite number"))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		w.fill(fresh.Elem(), node, path, tag)
		v.Set(fresh)
	case reflect.Struct:
		w.fillStruct(v, node, path)
	case reflect.Slice:
		w.fillSlice(v, node, path)
	default:
		w.fillScalar(v, node, path, tag)
	}
}

// fillNull: an empty value keeps the default, or clears what may be empty.
func (w *walker) fillNull(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice:
		v.SetZero()
	case reflect.Struct: // an empty block: all defaults
	default:
		w.fault(path, "has no value: give one, or leave the key out for the default")
	}
}

func (w *walker) fillStruct(v reflect.Value, node ast.Node, path string) {
	values := pairs(node)
	if values == nil {
		if m, ok := node.(*ast.MappingNode); ok && len(m.Values) == 0 {
			return
		}
		w.fault(path, "a block of keys expected, found %s", describe(node))
		return
	}
	fields, seen := reflect.VisibleFields(v.Type()), map[string]bool{}
	for _, pair := range values {
		key := pair.Key.String()
		if s, ok := pair.Key.(*ast.StringNode); ok {
			key = s.Value
		}
		at := w.at(pair.Key)
		field, ok := fieldNamed(fields, key)
		switch {
		case seen[key]:
			w.faults = append(w.faults, Fault{join(path, key), at.line, at.column, "stands twice"})
		case !ok:
			w.faults = append(w.faults, Fault{join(path, key), at.line, at.column, unknownKey(key, v)})
		default:
			w.fill(v.FieldByIndex(field.Index), pair.Value, join(path, key), field.Tag)
		}
		seen[key] = true
	}
}

func (w *walker) fillSlice(v reflect.Value, node ast.Node, path string) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		w.fault(path, "a list expected, found %s", describe(node))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(list.Values), len(list.Values))
	for i, item := range list.Values {
		w.fill(out.Index(i), item, fmt.Sprintf("%s.%d", path, i), "")
	}
	v.Set(out)
}

func (w *walker) fillScalar(v reflect.Value, node ast.Node, path string, tag reflect.StructTag) {
	want := map[reflect.Kind]string{
		reflect.String: "text", reflect.Bool: "true or false", reflect.Int: "a whole number",
		reflect.Uint64: "a whole number from 0", reflect.Float64: "a number",
	}[v.Kind()]
	wrong := func() { w.fault(path, "%s expected, found %s", want, describe(node)) }
	switch v.Kind() {
	case reflect.String:
		switch n := node.(type) {
		case *ast.StringNode:
			v.SetString(n.Value)
		case *ast.LiteralNode:
			v.SetString(n.Value.Value)
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			_, truth := n.(*ast.BoolNode)
			if cell := v.Type() == reflect.TypeFor[Cell](); !cell && (truth || v.Type() != reflect.TypeFor[Lambda]()) {
				wrong()
				return
			}
			v.SetString(n.String()) // a strength is a number or a word, a cell as it is written
		default:
			wrong()
			return
		}
	case reflect.Bool:
		n, ok := node.(*ast.BoolNode)
		if !ok {
			wrong()
			return
		}
		v.SetBool(n.Value)
	case reflect.Int:
		x, ok := integer(node)
		if !ok || x < math.MinInt || x > math.MaxInt {
			wrong()
			return
		}
		v.SetInt(x)
	case reflect.Uint64:
		x, ok := unsigned(node)
		if !ok {
			wrong()
			return
		}
		v.SetUint(x)
	case reflect.Float64:
		x, ok := number(node)
		if !ok {
			wrong()
			return
		}
		v.SetFloat(x)
	}
	w.inRange(v, path, tag)
}

// inRange checks the value against the field's tag and says what is allowed.
func (w *walker) inRange(v reflect.Value, path string, tag reflect.StructTag) {
	r := rangeOf(tag)
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); len(r.enum) > 0 && !contains(r.enum, s) {
			w.fault(path, "%q is not known; %s%s", s, allowed(tag, ""), Suggestion(s, r.enum))
		} else if r.pattern != nil && !r.pattern.MatchString(s) {
			w.fault(path, "%q does not fit the pattern %s", s, r.pattern)
		} else if r.length > 0 && len(s) > r.length {
			w.fault(path, "is %d characters long; allowed: %d", len(s), r.length)
		}
	case reflect.Int, reflect.Float64:
		x, shown := 0.0, ""
		if v.Kind() == reflect.Int {
			x, shown = float64(v.Int()), strconv.FormatInt(v.Int(), 10)
		} else {
			x, shown = v.Float(), strconv.FormatFloat(v.Float(), 'g', -1, 64)
		}
		switch {
		case math.IsNaN(x) || math.IsInf(x, 0):
			w.fault(path, "is %s; %s", shown, allowed(tag, "a finite number"))
		case !r.holds(x):
			w.fault(path, "%s is out of range; %s", shown, allowed(tag, ""))
		}
	}
}

type limits struct {
	min, max float64
	open     bool // min itself is not allowed
	openMax  bool // max itself is not allowed
	enum     []string
	pattern  *regexp.Regexp
	length   int // of text, at most; 0: any
}

func rangeOf(tag reflect.StructTag) limits {
	r := limits{min: math.Inf(-1), max: math.Inf(1), enum: registered(tag.Get("registered"))}
	for _, part := range strings.Split(tag.Get("jsonschema"), ",") {
		key, value, _ := strings.Cut(part, "=")
		x, _ := strconv.ParseFloat(value, 64)
		switch key {
		case "minimum":
			r.min = x
		case "exclusiveMinimum":
			r.min, r.open = x, true
		case "maximum":
			r.max = x
		case "exclusiveMaximum":
			r.max, r.openMax = x, true
		case "maxLength":
			r.length = int(x)
		case "pattern":
			r.pattern = regexp.MustCompile(value)
		case "enum":
			r.enum = append(r.enum, value)
		}
	}
	return r
}

// holds says that a number is in range.
func (r limits) holds(x float64) bool {
	return x >= r.min && x <= r.max && !(r.open && x == r.min) && !(r.openMax && x == r.max)
}

// allowed says what a field takes.
func allowed(tag reflect.StructTag, otherwise string) string {
	return "allowed: " + rangeOf(tag).words(otherwise)
}

// words are what is allowed.
func (r limits) words(otherwise string) string {
	num := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	switch {
	case len(r.enum) > 0:
		return strings.Join(r.enum, ", ")
	case r.open && math.IsInf(r.max, 1):
		return "more than " + num(r.min)
	case r.open && r.openMax:
		return fmt.Sprintf("more than %s, less than %s", num(r.min), num(r.max))
	case r.openMax:
		return fmt.Sprintf("%s or more, less than %s", num(r.min), num(r.max))
	case r.open:
		return fmt.Sprintf("more than %s, at most %s", num(r.min), num(r.max))
	case math.IsInf(r.min, -1) && math.IsInf(r.max, 1):
		return otherwise
	case math.IsInf(r.max, 1):
		return num(r.min) + " or more"
	}
	return fmt.Sprintf("%s to %s", num(r.min), num(r.max))
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
