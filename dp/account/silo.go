package account

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/dp/event"
)

// Federation is what a federation of silos promises to any one unit: the largest
// epsilon and the largest delta, since a unit's data lies in one silo only
// (docs/proofs/silo-composition.md). All must stand on the same terms.
func Federation(silos ...Guarantee) (Guarantee, error) {
	if len(silos) == 0 {
		return Guarantee{}, parameter("silos", 0, "at least one")
	}
	all := silos[0]
	for _, s := range silos[1:] {
		switch {
		case s.Unit != all.Unit:
			return Guarantee{}, fmt.Errorf("%w: silos protect %q and %q", ErrUnit, all.Unit, s.Unit)
		case s.Relation != all.Relation:
			return Guarantee{}, fmt.Errorf("%w: silos hold under %q and %q", ErrRelation, all.Relation, s.Relation)
		case s.Claim != all.Claim:
			return Guarantee{}, fmt.Errorf("%w: silos claim %q and %q", ErrClaim, all.Claim, s.Claim)
		}
		if s.Epsilon > all.Epsilon {
			all.Epsilon, all.Order, all.Accountant = s.Epsilon, s.Order, s.Accountant
		}
		switch { // what does not hold at one delta may hold at a larger one
		case s.Delta > all.Delta:
			all.Delta, all.Optimistic = s.Delta, s.Optimistic
		case s.Delta == all.Delta:
			all.Optimistic = max(all.Optimistic, s.Optimistic)
		}
		if trustRank(s.Trust) > trustRank(all.Trust) {
			all.Trust = s.Trust
		}
	}
	all.NotCovered = append(append([]string{}, all.NotCovered...), "units whose data lies in more than one silo")
	return all, nil
}

// SiloPlan is one silo's wish: train so many epochs and keep (epsilon, delta).
type SiloPlan struct {
	Name                    string
	Examples, Batch, Epochs int64
	Epsilon, Delta          float64
}

// SiloCost is what a silo must do, and what it then spends.
type SiloCost struct {
	Plan     SiloPlan
	Training Training
	Cost     Guarantee
}

// PlanSilos finds every silo's noise, Poisson sampling under add-remove, and the
// federation's line. The sizes decide rates and noise, so they must be public.
func PlanSilos(m Method, plans ...SiloPlan) ([]SiloCost, Guarantee, error) {
	costs := make([]SiloCost, 0, len(plans))
	lines := make([]Guarantee, 0, len(plans))
	for _, plan := range plans {
		steps, err := Epochs(plan.Epochs, plan.Batch, plan.Examples)
		if err != nil {
			return nil, Guarantee{}, fmt.Errorf("silo %q: %w", plan.Name, err)
		}
		training := Training{
			Terms: Terms{event.UnitExample, event.AddRemove, event.ClaimProved}, Trust: event.TrustLocal,
			Sampling: event.Poisson, Rate: float64(plan.Batch) / float64(plan.Examples), Steps: steps,
		}
		training, cost, err := training.WithNoiseFor(m, plan.Epsilon, plan.Delta)
		if err != nil {
			return nil, Guarantee{}, fmt.Errorf("silo %q: %w", plan.Name, err)
		}
		cost.NotCovered = append(cost.NotCovered, SizeNotCovered)
		costs = append(costs, SiloCost{plan, training, cost})
		lines = append(lines, cost)
	}
	all, err := Federation(lines...)
	return costs, all, err
}

// SizeNotCovered is what a number says when rate or steps came from the number of
// examples under add-remove (DESIGN, erratum 14).
const SizeNotCovered = "the number of examples: it must be public, or a declared lower bound"

// siloColumns are the columns of a silo file, in any order.
var siloColumns = []string{"silo", "examples", "batch", "epochs", "epsilon", "delta"}

// siloRows reads cells as spreadsheets write them: behind a byte-order mark, and between
// semicolons or tabs where a comma is a number's point.
func siloRows(r io.Reader) *csv.Reader {
	in := bufio.NewReader(r)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(len(mark))
	}
	first, _ := in.Peek(in.Size()) // what is wrong with the file the rows will tell
	first, _, _ = bytes.Cut(first, []byte("\n"))
	rows := csv.NewReader(in)
	rows.TrimLeadingSpace = true
	for _, separator := range ";\t" {
		if bytes.ContainsRune(first, separator) {
			rows.Comma, rows.TrimLeadingSpace = separator, separator != '\t'
		}
	}
	return rows
}

// ReadSiloPlans reads a CSV file with a header of siloColumns. Every fault is
// reported, with its line.
func ReadSiloPlans(r io.Reader) ([]SiloPlan, error) {
	rows := siloRows(r)
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: the header: %w", ErrParameter, err)
	}
	at := map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if _, twice := at[name]; twice || !slices.Contains(siloColumns, name) {
			return nil, fmt.Errorf("%w: column %q is unknown or there twice; want %s", ErrParameter, name, strings.Join(siloColumns, ","))
		}
		at[name] = i
	}
	if len(at) != len(siloColumns) {
		return nil, fmt.Errorf("%w: want the columns %s", ErrParameter, strings.Join(siloColumns, ","))
	}
	var plans []SiloPlan
	var faults []error
	seen := map[string]bool{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrParameter, err)
		}
		line, _ := rows.FieldPos(0)
		if rows.Comma != ',' {
			for _, name := range []string{"epsilon", "delta"} {
				row[at[name]] = strings.Replace(row[at[name]], ",", ".", 1)
			}
		}
		plan, err := readSiloPlan(row, at)
		if err == nil && seen[plan.Name] {
			err = fmt.Errorf("%w: silo %q is there twice", ErrParameter, plan.Name)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", line, err))
			continue
		}
		seen[plan.Name] = true
		plans = append(plans, plan)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if len(plans) == 0 {
		return nil, fmt.Errorf("%w: no silo in the file", ErrParameter)
	}
	return plans, nil
}

func readSiloPlan(row []string, at map[string]int) (SiloPlan, error) {
	p := SiloPlan{Name: strings.TrimSpace(row[at["silo"]])}
	var faults []error
	whole := func(name string, into *int64) {
		v, err := strconv.ParseInt(strings.TrimSpace(row[at[name]]), 10, 64)
		if err != nil || v < 1 {
			faults = append(faults, parameter(name, row[at[name]], "a whole number >= 1"))
		}
		*into = v
	}
	real := func(name string, into *float64) {
		v, err := strconv.ParseFloat(strings.TrimSpace(row[at[name]]), 64)
		if err != nil {
			faults = append(faults, parameter(name, row[at[name]], "a number"))
		}
		*into = v
	}
	whole("examples", &p.Examples)
	whole("batch", &p.Batch)
	whole("epochs", &p.Epochs)
	real("epsilon", &p.Epsilon)
	real("delta", &p.Delta)
	if p.Name == "" {
		faults = append(faults, parameter("silo", `""`, "a name"))
	}
	if len(faults) == 0 {
		if err := checkBudget(p.Epsilon, p.Delta); err != nil {
			faults = append(faults, err)
		}
		if p.Batch > p.Examples {
			faults = append(faults, parameter("batch", p.Batch, "at most examples"))
		}
	}
	return p, errors.Join(faults...)
}
