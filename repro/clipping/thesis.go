package clipping

import "github.com/coterie-fl/coterie/repro/lab"

// figure is a cell of the thesis's tables.
type figure struct {
	Epsilon   float64
	Method    method
	Step      float64
	Clip      float64
	Quantile  float64
	Figure    float64
	Deviation float64 // over 5 seeds
}

// setting is the point of the grid that the thesis found best.
func (f figure) setting() setting {
	switch f.Method {
	case online, quantile:
		return setting{f.Step, startClip, f.Quantile}
	case adamWOSM:
		return setting{adamStep, f.Clip, 0}
	}
	return setting{f.Step, f.Clip, 0}
}

// table is one of tables 3.8 to 3.13.
type table struct {
	Study string
	Table string
	K     int
	Rows  []figure
}

// figure is the number of the thesis's figure with the same numbers.
func (t table) figure() string {
	return map[string]string{"3.8": "3.7", "3.9": "3.8", "3.10": "3.9", "3.11": "3.10", "3.12": "3.11", "3.13": "3.12"}[t.Table]
}

// at is the thesis's figure; ok is false where it has none.
func (t table) at(m method, epsilon float64) (f figure, ok bool) {
	for _, f := range t.Rows {
		if f.Method == m && f.Epsilon == epsilon {
			return f, true
		}
	}
	return figure{}, false
}

// thesisTables are all of them.
func thesisTables() ([]table, error) {
	var of struct {
		Source string
		Tables []table
	}
	err := lab.Expected("clipping.json", &of)
	return of.Tables, err
}

// table is the thesis's for the task's data, with k values a parameter.
func (t task) table(k int) table {
	for _, one := range t.thesis {
		if one.Study == t.kind && one.K == k {
			return one
		}
	}
	return table{}
}
