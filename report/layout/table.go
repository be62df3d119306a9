package layout

// Table is a table of figures under a heading, built column by column.
type Table struct {
	ID      string // of its heading
	Columns []Column
	Rows    [][]Cell
}

// Column is the head of a column; figures are set to the right.
type Column struct {
	Name    string
	Figures bool
}

// Cell is one figure or some words, and what stands beneath them.
type Cell struct {
	Text   string
	Badge  *Badge
	Small  []string
	Strong bool
}

// Words is a cell of text, with what stands beneath it.
func Words(text string, small ...string) Cell { return Cell{Text: text, Small: small} }

// AddColumn adds a column with a cell for every item; one that no item fills is left out.
func AddColumn[T any](t *Table, name string, figures bool, items []T, cell func(T) Cell) {
	cells, filled := make([]Cell, len(items)), false
	for i, item := range items {
		cells[i] = cell(item)
		filled = filled || cells[i].Text != "" || cells[i].Badge != nil
	}
	if !filled {
		return
	}
	t.Columns = append(t.Columns, Column{name, figures})
	if t.Rows == nil {
		t.Rows = make([][]Cell, len(items))
	}
	for i, c := range cells {
		t.Rows[i] = append(t.Rows[i], c)
	}
}
