package contacts

import "math"

// box is a part of the map in degrees.
type box struct{ west, south, east, north float64 }

// columns and rows cut the map, which is Virginia's, into regions: five columns of two. The
// outer ones have no outer border.
var (
	columnCuts = [...]float64{-82, -80.5, -79, -77.5}
	rowCut     = 37.5
)

// RegionAt is the region of a residence, 0 to 9: regions are boxes of longitude and
// latitude, two of a column from south to north, columns from west to east.
func RegionAt(longitude, latitude float64) int {
	column := 0
	for _, cut := range columnCuts {
		if longitude >= cut {
			column++
		}
	}
	region := 2 * column
	if latitude >= rowCut {
		region++
	}
	return region
}

// RegionBox is the part of a region that is drawn, in degrees; generated homes lie in it.
func RegionBox(region int) (west, south, east, north float64) {
	west = columnCuts[0] - 1.5 + 1.5*float64(region/2)
	if region%2 == 0 {
		return west, rowCut - 1, west + 1.5, rowCut
	}
	return west, rowCut, west + 1.5, rowCut + 1.5
}

// tractBox is a tract's square in the grid of its region.
func (p *persons) tractBox(region, tract int) box {
	west, south, east, north := RegionBox(region)
	k, n := tract-p.tractsOf[region], p.tractsOf[region+1]-p.tractsOf[region]
	side := int(math.Ceil(math.Sqrt(float64(n))))
	width, height := (east-west)/float64(side), (north-south)/float64(side)
	b := box{west: west + width*float64(k%side), south: south + height*float64(k/side)}
	b.east, b.north = b.west+width, b.south+height
	return b
}

// at is a point inside, away from the borders, so that rounding moves nobody out.
func (b box) at(s stream, id uint64) (longitude, latitude float64) {
	s = s.of(id)
	inside := func(low, high, share float64) float64 { return low + float64((high-low)*(.05+float64(.9*share))) }
	return inside(b.west, b.east, s.share(1)), inside(b.south, b.north, s.share(2))
}

// regionOf is a tract's.
func (p *persons) regionOf(tract int) int {
	r := 0
	for p.tractsOf[r+1] <= tract {
		r++
	}
	return r
}
