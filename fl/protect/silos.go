package protect

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
)

// checkSilos: participants with targets of their own are named, each once.
func checkSilos(c *config.Checker, p config.Privacy) {
	seen := map[string]bool{}
	for i, s := range p.Silos {
		at := fmt.Sprintf("privacy.silos.%d", i)
		c.Require(s.Name != "", at+".name", "is empty; name a participant")
		c.Require(!seen[s.Name], at+".name", "%q stands twice", s.Name)
		seen[s.Name] = true
	}
}
