package data

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
)

// Kind is one data set: all that the program asks of it by name. Every kind stands in
// the file of its data set and registers itself there.
type Kind struct {
	// DataKind is the name, the keys that it reads, and what a run file on the data need
	// not say.
	config.DataKind
	// Check says what is wrong with the block; nil: nothing can be.
	Check func(c *config.Checker, d config.Data)
	// Shape is what is known of the examples before anything is read; whole says that
	// it is everything.
	Shape func(d config.Data) (s Shape, whole bool)
	// Clients is how many train and validate, where the block says so; nil: files do.
	Clients func(d config.Data) (train, validation int)
	Load    func(f *Folder, d config.Data, seed uint64) (*Federation, error)
	// Crowd is Load for clients that are not held; nil: they always are.
	Crowd func(f *Folder, d config.Data, seed uint64) (*Federation, error)
	// One reads what a single participant of a federation holds, as a federation of one
	// client with that name, from the source in the block; nil: the block has none.
	One func(d config.Data, seed uint64, name string) (*Federation, error)
	// Ranges are documented public ranges of the features; nil: there are none.
	Ranges func(d config.Data) (centre, scale []float64)
	// Words are what a report says of the data, without a full stop.
	Words func(d config.Data) string
	// Get says how to get the files, without a full stop; empty: none are needed.
	Get string
}

// Drawn says that the data follow from the block and the seed: nothing is read that could be
// changed.
func (k Kind) Drawn() bool { return k.Get == "" }

var kinds = map[string]Kind{}

// Register makes a kind known here and to run files. It is called from init functions.
func Register(k Kind) {
	if !k.OwnTest { // Load holds the share out
		k.Keys = slices.Concat(k.Keys, []string{"test_share"})
	}
	config.RegisterData(k.DataKind)
	words := k.Words
	k.Words = func(d config.Data) string {
		if d.TestShare == 0 || k.OwnTest { // a silo's own words say that it is one
			return words(d)
		}
		return fmt.Sprintf("%s; every client that trains holds out %.3g %% of its own examples, each by chance", words(d), 100*d.TestShare)
	}
	kinds[k.Name] = k
}

// Kinds are all kinds, by name.
func Kinds() []Kind {
	var all []Kind
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, kinds[name])
	}
	return all
}

// KindOf is the kind that a data block names.
func KindOf(d config.Data) (Kind, error) {
	k, ok := kinds[d.Kind]
	if !ok {
		return Kind{}, fmt.Errorf("data.kind %q is not known; allowed: %s", d.Kind, strings.Join(config.DataKinds(), ", "))
	}
	return k, nil
}

// Check lists what is wrong with the data block.
func Check(run config.Run) config.Faults {
	var c config.Checker
	k, err := KindOf(run.Data)
	if err != nil {
		c.Require(false, "data.kind", "%v", err)
		return c.Faults()
	}
	checkForeign(&c, k, run)
	ownPart := run.Data.Test != config.TestPart{} || !slices.Contains(k.Keys, "test_share")
	c.Require(run.Data.TestShare > 0 || ownPart || !k.OwnTest, "data.test_share", "is %v, but silos of %s are judged on what they hold out; allowed: more than 0, less than 1", run.Data.TestShare, k.Name)
	if k.Check != nil {
		k.Check(&c, run.Data)
	}
	return c.Faults()
}

// checkForeign finds keys that the kind does not read. One that has its default value
// is let pass: files with every default spelled out, as runs leave them, have those of
// all kinds.
func checkForeign(c *config.Checker, k Kind, run config.Run) {
	usual := reflect.ValueOf(config.Default(k.Name, run.Algorithm.Kind, run.Algorithm.Mode).Data)
	reads := slices.Concat([]string{"kind"}, k.Keys)
	mine := reflect.ValueOf(run.Data)
	for i := range mine.NumField() {
		key, _, _ := strings.Cut(mine.Type().Field(i).Tag.Get("yaml"), ",")
		value := mine.Field(i)
		empty := value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0
		if slices.Contains(reads, key) || empty || reflect.DeepEqual(value.Interface(), usual.Field(i).Interface()) {
			continue
		}
		c.Require(false, "data."+key, "is set, but data of the kind %s do not read it; remove it (they read: %s)", k.Name, strings.Join(reads, ", "))
	}
}

// ShapeOf is what is known of a block's examples before anything is read; whole says
// that it is everything.
func ShapeOf(d config.Data) (s Shape, whole bool) {
	if k, ok := kinds[d.Kind]; ok {
		return k.Shape(d)
	}
	return Shape{}, false
}

// Load draws or reads the run file's data.
func (f *Folder) Load(d config.Data, seed uint64) (*Federation, error) {
	k, err := KindOf(d)
	if err != nil {
		return nil, err
	}
	fed, err := k.Load(f, d, seed)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if share := d.TestShare; share > 0 && !k.OwnTest { // silos have done so, before they were scaled
		fed.holdOut(seed, share)
	}
	return fed, nil
}

// wholeShape is a Kind's Shape that does not depend on the block.
func wholeShape(s Shape) func(config.Data) (Shape, bool) {
	return func(config.Data) (Shape, bool) { return s, true }
}
