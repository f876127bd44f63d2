package toolgroups

import (
	"cmp"
	"slices"
)

// The bounds of the search for the smallest cover. A longer search ends with the best cover so far.
const (
	maxCoverCandidates = 400     // candidates that are compared with each other
	maxCoverSteps      = 200_000 // partial choices that are tried
)

// cover is a candidate of a set cover: the needs that it meets, and the tools that it costs.
type cover struct{ needs, cost bits }

// smallestCover returns the indexes of covers that together meet all needs. No other choice has
// fewer tools, and none with as many tools has fewer covers. At least one cover of the list must
// meet each need. exact is false if a better choice may exist.
func smallestCover(list []cover, needs int) (chosen []int, exact bool) {
	useful := usefulCovers(list)
	x := coverSearch{list: list, byNeed: make([][]int, needs), stepsLeft: maxCoverSteps}
	for _, i := range useful {
		for n := range needs {
			if list[i].needs.has(uint32(n)) {
				x.byNeed[n] = append(x.byNeed[n], i)
			}
		}
	}
	x.best = greedyCover(list, useful, needs)
	x.bestCost = x.cost(x.best)
	if len(useful) > maxCoverCandidates {
		return x.best, false
	}
	x.extend(nil, newBits(uint32(needs)), emptyCost(list))
	return x.best, x.stepsLeft > 0
}

// usefulCovers returns the indexes of the covers that meet a need and are not worse than
// another one.
func usefulCovers(list []cover) (useful []int) {
	for i, c := range list {
		if c.needs.count() > 0 {
			useful = append(useful, i)
		}
	}
	if len(useful) > maxCoverCandidates {
		return useful
	}
	return slices.DeleteFunc(slices.Clone(useful), func(i int) bool {
		return slices.ContainsFunc(useful, func(j int) bool {
			return j != i && list[j].dominates(list[i]) && (j < i || !list[i].dominates(list[j]))
		})
	})
}

// dominates reports whether c meets all that other meets and costs no other tools.
func (c cover) dominates(other cover) bool {
	return c.needs.hasAll(other.needs) && other.cost.hasAll(c.cost)
}

// emptyCost returns the empty set of tools, as wide as the costs of covers.
func emptyCost(list []cover) bits {
	if len(list) == 0 {
		return nil
	}
	return make(bits, len(list[0].cost))
}

// greedyCover chooses the cover with the fewest further tools for each further need, until all
// needs are met. Then it leaves out the covers that the others make superfluous.
func greedyCover(list []cover, useful []int, needs int) (chosen []int) {
	met, cost := newBits(uint32(needs)), emptyCost(list)
	for met.count() < needs {
		best := -1
		for _, i := range useful {
			if list[i].needs.countBeyond(met) > 0 && (best < 0 || list[i].costsLessPerNeed(list[best], met, cost)) {
				best = i
			}
		}
		chosen = append(chosen, best)
		met.addAll(list[best].needs)
		cost.addAll(list[best].cost)
	}
	for i := len(chosen) - 1; i >= 0; i-- {
		others, left := newBits(uint32(needs)), slices.Delete(slices.Clone(chosen), i, i+1)
		for _, j := range left {
			others.addAll(list[j].needs)
		}
		if others.count() == needs {
			chosen = left
		}
	}
	return chosen
}

// costsLessPerNeed reports whether c costs fewer further tools than other for each further need.
func (c cover) costsLessPerNeed(other cover, met, cost bits) bool {
	return c.cost.countBeyond(cost)*other.needs.countBeyond(met) < other.cost.countBeyond(cost)*c.needs.countBeyond(met)
}

// coverSearch looks for a smaller cover by trying the candidates of one need after another.
type coverSearch struct {
	list      []cover
	byNeed    [][]int
	best      []int
	bestCost  int
	stepsLeft int
}

// extend tries all ways to extend a partial choice, which meets some needs at a cost.
func (x *coverSearch) extend(chosen []int, met, cost bits) {
	if x.stepsLeft == 0 {
		return
	}
	x.stepsLeft--
	next := x.rarest(met)
	if next < 0 {
		if x.improves(cost.count(), len(chosen)) {
			x.best, x.bestCost = slices.Clone(chosen), cost.count()
		}
		return
	}
	if !x.improves(cost.count(), len(chosen)+1) {
		return
	}
	choices := slices.Clone(x.byNeed[next])
	slices.SortStableFunc(choices, func(a, b int) int {
		return cmp.Compare(x.list[a].cost.countBeyond(cost), x.list[b].cost.countBeyond(cost))
	})
	for _, i := range choices {
		x.extend(append(slices.Clip(chosen), i), met.union(x.list[i].needs), cost.union(x.list[i].cost))
	}
}

// improves reports whether a choice is better than the best so far.
func (x *coverSearch) improves(cost, count int) bool {
	return cost < x.bestCost || cost == x.bestCost && count < len(x.best)
}

// rarest returns the need that is not met and has the fewest candidates, -1 if all are met.
func (x *coverSearch) rarest(met bits) int {
	best := -1
	for n, choices := range x.byNeed {
		if !met.has(uint32(n)) && (best < 0 || len(choices) < len(x.byNeed[best])) {
			best = n
		}
	}
	return best
}

// cost returns the number of tools of a choice.
func (x *coverSearch) cost(chosen []int) int {
	all := emptyCost(x.list)
	for _, i := range chosen {
		all.addAll(x.list[i].cost)
	}
	return all.count()
}
