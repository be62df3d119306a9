package membership

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/coterie-fl/coterie/artifact"
	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// OfFolder is a model folder as a target: nothing says how it was trained, and on what, but
// whoever attacks it knows examples that it was trained on, and others.
func OfFolder(m *artifact.Model, members, others []data.Client) Target {
	run := config.Run{Name: m.Name, Model: m.Description.Model}
	run.Algorithm.Kind, run.Algorithm.Components, run.Algorithm.Local.Loss = m.Method, m.Components, m.Loss
	return Target{Run: run, Models: m, Members: members, Others: others}
}

// federation is the data of an attack: the run's own, or what was given in their place.
func (t *Target) federation(folder *data.Folder, o Options) (*data.Federation, error) {
	if t.Members == nil {
		f, err := folder.Load(t.Run.Data, t.Run.Seed)
		if err != nil || t.Others == nil {
			return f, err
		}
		own := *f
		own.Validation = t.Others
		return &own, differ(own.Train, t.Others, o)
	}
	if o.References+o.Shadows > 0 {
		return nil, fmt.Errorf("%w: members that are named by hand do not say how the model was trained, so that no other can be trained like it; leave --references and --shadows out, or attack the run directory by its own data, without --members", ErrNotThere)
	}
	s := t.Models.Shape
	f := &data.Federation{Features: s.Features, Classes: s.Classes, Reconstruct: s.Reconstruct, Vocabulary: s.Vocabulary, Train: t.Members, Validation: t.Others}
	if err := differ(t.Members, t.Others, o); err != nil || o.Unit == UnitClient {
		return f, err
	}
	return sameClients(f), nil
}

// sameClients is a federation in which the others' examples are held out by the clients
// that have members, where they are the same clients: each can then be attacked by the
// model that it uses. Otherwise it is as it was.
func sameClients(f *data.Federation) *data.Federation {
	if len(f.Train) != len(f.Validation) {
		return f
	}
	out := *f
	out.Train, out.Validation = slices.Clone(f.Train), nil
	for i := range out.Train {
		at := slices.IndexFunc(f.Validation, func(c data.Client) bool { return c.Name == out.Train[i].Name })
		if at < 0 {
			return f
		}
		out.Train[i].Held = &f.Validation[at]
	}
	return &out
}

// differ says what cannot be told apart: a client of both kinds, or the same data twice.
func differ(members, others []data.Client, o Options) error {
	seen := map[string]bool{}
	for i := range members {
		if o.Unit == UnitClient && slices.ContainsFunc(others, func(c data.Client) bool { return c.Name == members[i].Name }) {
			return fmt.Errorf("%w: the client %q is among those that took part, and among the others; name the clients of both (--client-column, or a file or folder a client), each in one of them", ErrNotThere, members[i].Name)
		}
		eachKey(&members[i], func(key string) { seen[key] = true })
	}
	all, same := 0, 0
	for i := range others {
		eachKey(&others[i], func(key string) {
			all++
			if seen[key] {
				same++
			}
		})
	}
	switch {
	case all == 0:
		return fmt.Errorf("%w: there are no non-members to compare with", ErrNotThere)
	case same == all:
		return fmt.Errorf("%w: every one of the %d non-members is a member, too: --non-members names examples that were trained on", ErrNotThere, all)
	}
	return nil
}

// eachKey gives every example as bytes.
func eachKey(c *data.Client, take func(key string)) {
	var key []byte
	for i := range c.Len() {
		key = key[:0]
		if c.Images == nil {
			for _, v := range append(c.X[i*c.Features:(i+1)*c.Features:(i+1)*c.Features], c.Y[i]) {
				key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
			}
		} else {
			n := c.Images.Height * c.Images.Width * c.Images.Depth()
			at := c.Index[i]
			key = append(key, c.Images.Pixels[at*n:(at+1)*n]...)
		}
		take(string(key))
	}
}
