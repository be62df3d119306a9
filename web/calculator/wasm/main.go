//go:build wasip1

// Command wasm is the calculator inside the page: it takes questions and hands out parts of the page.
package main

import (
	"encoding/json"
	"unsafe"

	"github.com/coterie-fl/coterie/web/calculator/panel"
)

// The page writes a question into room, calls ask, and reads what it says; then it calls
// more until that says nothing.
var (
	question []byte
	said     []byte
	shown    panel.Panel
)

func main() {}

//go:wasmexport room
func room(size int32) unsafe.Pointer {
	question = make([]byte, max(1, size))
	return unsafe.Pointer(&question[0])
}

// ask says how many bytes the answer has.
//
//go:wasmexport ask
func ask(size int32) int32 { return say(shown.Ask(question[:size])) }

// more says how many bytes the next piece has; 0: there is none.
//
//go:wasmexport more
func more() int32 {
	piece, ok := shown.More()
	if !ok {
		return 0
	}
	return say(piece)
}

// answer is where the last bytes lie.
//
//go:wasmexport answer
func answer() unsafe.Pointer { return unsafe.Pointer(&said[0]) }

func say(v any) int32 {
	var err error
	if said, err = json.Marshal(v); err != nil {
		said, _ = json.Marshal(panel.Shown{Error: err.Error()})
	}
	return int32(len(said))
}
