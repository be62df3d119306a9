package participant

import (
	"cmp"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/fl"
)

// Own are examples that a participant has read for itself, as its own copy of the run
// file describes them. They are read before a server is asked anything: what is wrong
// with them nobody else learns.
type Own struct {
	examples   *data.Client
	uncovered  []string
	described  config.Data // as everybody may see it
	seed       uint64      // keys which examples are held out
	agreedUpon string      // the run file
}

// ReadOwn reads the examples that a participant's file names; nil if it names none.
func ReadOwn(s plan.Source, participant string, log *slog.Logger) (*Own, error) {
	if s.Kind != "own" {
		return nil, nil
	}
	run, err := plan.Read(s.Run)
	if err != nil {
		return nil, fmt.Errorf("data.run: %w", err)
	}
	k, err := data.KindOf(run.Data)
	if err != nil {
		return nil, err
	}
	if k.One == nil {
		return nil, fmt.Errorf("%w: data.run: %s describes data of the kind %s, which nobody has of one's own; allowed: table, pictures, pandemic", config.ErrInvalid, s.Run, k.Name)
	}
	d := run.Data
	if (d.Test.Path != "") != (s.Test.Path != "") {
		return nil, fmt.Errorf("%w: data.test.path is %q here and %q in %s: held-out examples lie in a file of their own in both, or in neither", config.ErrInvalid, s.Test.Path, d.Test.Path, s.Run)
	}
	d.Source, d.Test.Path = s.Source, s.Test.Path
	f, err := k.One(d, run.Seed, cmp.Or(s.Name, participant))
	if err != nil {
		return nil, fmt.Errorf("read the participant's data: %w", err)
	}
	if len(f.Train) != 1 {
		return nil, fmt.Errorf("the participant's data hold %d clients; one is wanted: name the client column in data.source.client, or a path of one client", len(f.Train))
	}
	log.Info("own examples read; this line and its figures stay here", "report", fmt.Sprint(f.Report), "train", f.Train[0].Len(), "held_out", f.Train[0].Held.Len())
	return &Own{examples: &f.Train[0], uncovered: f.NotCovered, described: plan.Shared(run.Data), seed: run.Seed, agreedUpon: s.Run}, nil
}

// keeps holds the examples against what the policy promises of them.
func (o *Own) keeps(p plan.Policy) error {
	if o == nil || p.Degree == 0 {
		return nil
	}
	if err := contacts.KeepPromise(o.examples.People, p.Degree); err != nil {
		return fmt.Errorf("%w: the policy's degree: %w", config.ErrInvalid, err)
	}
	return nil
}

// shapeInWords says what an example looks like.
func shapeInWords(s data.Shape) string {
	text := fmt.Sprintf("rows of %d values", s.Features)
	if s.Pictures() {
		text = fmt.Sprintf("pictures of %d x %d with %d channels", s.Height, s.Width, s.Depth())
	}
	switch {
	case s.Classes > 0:
		return fmt.Sprintf("%s in %d classes", text, s.Classes)
	case s.Vocabulary > 0:
		return fmt.Sprintf("rows of %d words out of %d", s.Features, s.Vocabulary)
	case s.Reconstruct:
		return text + " that are their own targets"
	}
	return text + " with a value as target"
}

// fill gives the half these examples, if the plan describes them as its owner does. The
// ranges, lists and keys of a plan are statements that the owner has to agree to: another
// range would scale the rows otherwise, another seed hold out others.
func (o *Own) fill(h *Half, run config.Run, shape data.Shape) error {
	var wrong []string
	mine, asked := reflect.ValueOf(o.described), reflect.ValueOf(run.Data)
	for i := range mine.NumField() {
		if a, b := mine.Field(i), asked.Field(i); !reflect.DeepEqual(a.Interface(), b.Interface()) && !(empty(a) && empty(b)) {
			key, _, _ := strings.Cut(mine.Type().Field(i).Tag.Get("yaml"), ",")
			wrong = append(wrong, fmt.Sprintf("data.%s is %v here and %v in the plan", key, a.Interface(), b.Interface()))
		}
	}
	if o.seed != run.Seed && (run.Data.TestShare > 0 || run.Data.TrainLimit > 0) {
		wrong = append(wrong, fmt.Sprintf("seed, which says which examples are held out, is %d here and %d in the plan", o.seed, run.Seed))
	}
	if k, err := data.KindOf(run.Data); err == nil && k.One == nil {
		if o.examples.Images == nil && o.examples.Features != shape.Features {
			wrong = append(wrong, fmt.Sprintf("the examples have %d features here and %d in the plan", o.examples.Features, shape.Features))
		}
	} else if described, _ := data.ShapeOf(run.Data); described != shape {
		wrong = append(wrong, fmt.Sprintf("the examples are %s by the plan's own run file, and %s by the plan", shapeInWords(described), shapeInWords(shape)))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: the plan describes the data otherwise than %s: %s; use the same run file on both sides", fl.ErrRefused, o.agreedUpon, strings.Join(wrong, "; "))
	}
	h.Data, h.Uncovered, h.Name = o.examples, o.uncovered, o.examples.Name
	return nil
}

func empty(v reflect.Value) bool { return v.Kind() == reflect.Slice && v.Len() == 0 }
