package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

func integer(n ast.Node) (int64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch x := i.Value.(type) {
	case int64:
		return x, true
	case uint64:
		return int64(x), x <= math.MaxInt64
	}
	return 0, false
}

func unsigned(n ast.Node) (uint64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch x := i.Value.(type) {
	case int64:
		return uint64(x), x >= 0
	case uint64:
		return x, true
	}
	return 0, false
}

func number(n ast.Node) (float64, bool) {
	switch n := n.(type) {
	case *ast.FloatNode:
		return n.Value, true
	case *ast.IntegerNode:
		if x, ok := integer(n); ok {
			return float64(x), true
		}
		x, ok := unsigned(n)
		return float64(x), ok
	case *ast.StringNode:
		// YAML 1.1 reads 1e-3 as text; nobody means text by it.
		x, err := strconv.ParseFloat(n.Value, 64)
		plain := n.Token == nil || !strings.ContainsAny(n.Token.Origin, `"'`)
		return x, err == nil && plain
	}
	return 0, false
}

// describe names what stands where something else was expected.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return fmt.Sprintf("the text %q", n.Value)
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.IntegerNode, *ast.FloatNode:
		return "the number " + n.String()
	case *ast.BoolNode:
		return n.String()
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a block of keys"
	}
	return "something else"
}

// fieldNamed is one of a block's fields: to list them takes longer than to read a value.
func fieldNamed(fields []reflect.StructField, key string) (reflect.StructField, bool) {
	for _, f := range fields {
		if keyOf(f) == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// keyOf is a field's name in the file.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

func unknownKey(key string, v reflect.Value) string {
	var known []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		known = append(known, keyOf(f))
	}
	return fmt.Sprintf("unknown key %q%s; known here: %s", key, Suggestion(key, known), strings.Join(known, ", "))
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// Suggestion is a question after the nearest known word, if one is near.
func Suggestion(word string, known []string) string {
	best, least := "", 1+len(word)/2
	for _, k := range known {
		if d := editDistance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
