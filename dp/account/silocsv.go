package account

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// siloColumns are the columns of a silo file, in any order.
var siloColumns = []string{"silo", "examples", "batch", "epochs", "epsilon", "delta"}

// ReadSiloPlans reads a CSV file with a header of siloColumns. Every fault is
// reported, with its line.
func ReadSiloPlans(r io.Reader) ([]SiloPlan, error) {
	rows := csv.NewReader(r)
	rows.TrimLeadingSpace = true
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
