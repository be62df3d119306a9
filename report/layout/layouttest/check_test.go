package layouttest

import "testing"

// The checks can fail: each of these pages has one fault.
func TestFaultsAreFound(t *testing.T) {
	for _, page := range []string{
		"<td>NaN</td>", "<td>+Inf</td>", `<script>x</script>`, `<p style="background:url(x)">`, `<a href="https://example.org">x</a>`,
		`<p id="a"></p><p id="a"></p>`, `<svg class="chart"><text x="3">a</svg>`, `<svg class="chart"><circle cx="900" cy="3"/></svg>`,
		`<svg class="chart"><path d="M5 700L3 3"/></svg>`,
	} {
		if len(Faults(page)) == 0 {
			t.Errorf("no fault found in %s", page)
		}
	}
}
