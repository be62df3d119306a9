package coterie_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// goSyntax is what fmt writes of Go values, and internal what programs call events.
var (
	goSyntax = regexp.MustCompile(`%[+#]v|%T`)
	internal = regexp.MustCompile(`(?i)composed:|repeated:|sampled:|metric-laplace|discrete-gaussian|node-gaussian|\btnb-`)
)

// forProgrammers are files whose errors only a fault of this program can bring about: the
// type is what is wrong.
var forProgrammers = []string{"config/decode.go", "federation/transfer/files.go", "federation/server/codec.go"}

// TestErrorsAreInWords: no error is written in Go's syntax or by the names that events have
// in JSON. What refusals read like is held by the tests of their packages.
func TestErrorsAreInWords(t *testing.T) {
	seen := 0
	for _, path := range sources(t) {
		if slices.Contains(forProgrammers, path) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !makesErrors(call) {
				return true
			}
			for _, argument := range call.Args {
				ast.Inspect(argument, func(n ast.Node) bool {
					literal, ok := n.(*ast.BasicLit)
					if !ok || literal.Kind != token.STRING {
						return true
					}
					text, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					seen++
					if word := goSyntax.FindString(text) + internal.FindString(text); word != "" {
						t.Errorf("%s: %q shows people %q; describe the value (event.Describe tells an event)", path, text, word)
					}
					return true
				})
			}
			return true
		})
	}
	if seen < 1000 {
		t.Errorf("%d texts of errors were found: the test looks in the wrong place", seen)
	}
}

// sources are all files that are built into something.
func sources(t *testing.T) (paths []string) {
	t.Helper()
	for _, p := range packages(t) {
		folder := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, name := range p.GoFiles {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	return paths
}

// makesErrors says whether a call makes an error or a fault of a file.
func makesErrors(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name := selector.Sel.Name
	return name == "Errorf" || name == "New" && isPackage(selector.X, "errors") || name == "Require" || name == "Refuse"
}

func isPackage(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
