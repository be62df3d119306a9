package population

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/coterie-fl/coterie/data/contacts"
	"github.com/coterie-fl/coterie/report/chart"
)

const (
	mapTop, mapBottom = 20, chart.Height - 30
	mapLeft, mapRight = 8, chart.Width - 8
	mostShades        = 5
)

// drawMap draws regions where they lie: the darker, the larger the share of persons who
// were ever infected; a disc is as large as the region has persons.
func drawMap(regions []contacts.RegionCount) (template.HTML, string) {
	west, south, east, north := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	largest, worst := 1, 0.0
	for _, r := range regions {
		w, s, e, n := contacts.RegionBox(r.Region)
		west, south, east, north = min(west, w), min(south, s), max(east, e), max(north, n)
		largest = max(largest, r.Persons)
		worst = max(worst, prevalence(r))
	}
	scale := min((mapRight-mapLeft)/(east-west), (mapBottom-mapTop)/(north-south))
	top := mapTop + max(0, mapBottom-mapTop-(north-south)*scale)/2
	var c chart.Canvas
	var told []string
	for _, r := range regions {
		w, s, e, n := contacts.RegionBox(r.Region)
		x, y, width, height := mapLeft+(w-west)*scale, top+(north-n)*scale, (e-w)*scale, (n-s)*scale
		for range shades(prevalence(r), worst) {
			c.Rect("band s1", x, y, width, height)
		}
		for _, l := range [][4]float64{{x, y, x + width, y}, {x, y + height, x + width, y + height}, {x, y, x, y + height}, {x + width, y, x + width, y + height}} {
			c.Line("axis", l[0], l[1], l[2], l[3])
		}
		if r.Persons > 0 {
			c.Circle("participant-dot", x+width/2, y+height/2+10, max(1.5, .28*min(width, height)*math.Sqrt(float64(r.Persons)/float64(largest))))
		}
		c.Text("mark-name", "middle", x+width/2, y+15, fmt.Sprintf("%d: %.2g %%", r.Region, 100*prevalence(r)))
		told = append(told, fmt.Sprintf("region %d: %d persons, %.3g %% ever infected", r.Region, r.Persons, 100*prevalence(r)))
	}
	return c.SVG("map", "Regions by the share of persons who were ever infected", strings.Join(told, "; ")),
		fmt.Sprintf("A box a region, with its number and the share of its persons who were ever infected: the darker, the larger, in %d steps up to %.2g %%. Discs are as large as regions have persons. Boxes are those of longitude and latitude by which homes are given to regions; the outer ones go on beyond the map.", mostShades, 100*worst)
}

func prevalence(r contacts.RegionCount) float64 { return float64(r.Ever) / float64(max(1, r.Persons)) }

// shades is how dark a share is.
func shades(share, worst float64) int {
	if worst == 0 {
		return 0
	}
	return int(math.Ceil(mostShades * share / worst))
}
