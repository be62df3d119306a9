package artifact

import "strconv"

// answerNames are the columns of an example's answers.
func (m *Model) answerNames() []string {
	var names []string
	for k := range m.Components {
		names = append(names, "component "+strconv.Itoa(k+1))
	}
	if m.projects() {
		return names
	}
	for _, class := range m.Labels {
		names = append(names, "probability "+class)
	}
	return append(names, "predicted")
}

// classCells are the names of the classes, as cells; nil for numbers and projections.
func (m *Model) classCells() [][]byte {
	if m.projects() {
		return nil
	}
	var cells [][]byte
	for _, class := range m.Labels {
		cells = append(cells, appendCell(nil, class))
	}
	return cells
}

// headerLine is the first line of predictions.
func headerLine(names []string) []byte {
	var line []byte
	for i, name := range names {
		if i > 0 {
			line = append(line, ',')
		}
		line = appendCell(line, name)
	}
	return append(line, '\n')
}

// appendAnswers appends one example's answers: numbers, or every class's probability
// and the chosen class.
func appendAnswers(line []byte, own []float64, classes [][]byte) []byte {
	for _, v := range own {
		line = strconv.AppendFloat(append(line, ','), v, 'g', 9, 64)
	}
	if classes != nil {
		line = append(append(line, ','), classes[largestAt(own)]...)
	}
	return line
}

// appendCell appends a cell of CSV (RFC 4180), in quotes where it needs them.
func appendCell(line []byte, cell string) []byte {
	quoted := len(cell) > 0 && (cell[0] == ' ' || cell[len(cell)-1] == ' ')
	for i := 0; i < len(cell) && !quoted; i++ {
		switch cell[i] {
		case ',', '"', '\n', '\r', ';', '\t':
			quoted = true
		}
	}
	if !quoted {
		return append(line, cell...)
	}
	line = append(line, '"')
	for i := range len(cell) {
		if cell[i] == '"' {
			line = append(line, '"')
		}
		line = append(line, cell[i])
	}
	return append(line, '"')
}
