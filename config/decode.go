package config

import (
	"errors"
	"fmt"
	"reflect"
)

// Decode fills another file than a run file, as strictly: unknown keys, wrong types
// and values out of range are listed at once, with what check finds, if it is not
// nil. into points to a struct that holds the defaults; its tags are those of Run.
func Decode(text []byte, into any, check func() Faults) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode a configuration into %T: a pointer to a struct is needed", into)
	}
	root, err := parse(text)
	if err != nil {
		return err
	}
	w := &walker{positions: map[string]position{"": {1, 1}}, unread: map[string]bool{}}
	if root != nil {
		w.fill(v.Elem(), root, "", "")
	}
	f := &File{positions: w.positions, unread: w.unread}
	faults := w.faults
	if check != nil {
		var found Faults
		errors.As(f.Located(check()), &found)
		for _, x := range found {
			if !f.unread[x.Path] {
				faults = append(faults, x)
			}
		}
	}
	return f.Located(faults)
}
