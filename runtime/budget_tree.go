package runtime

import (
	"math"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// quantity is what a budget limits.
type quantity int

// The quantities, in the order in which they are checked.
const (
	requestQuantity quantity = iota // requests to language models, since the last retry
	tokenQuantity
	costQuantity
	callQuantity // tool calls that were started
	quantities
)

// String returns the name of q, as events and the API have it.
func (q quantity) String() string {
	return [quantities]string{"requests", "tokens", "cost", "calls"}[q]
}

// amounts has an amount of each quantity.
type amounts [quantities]int64

// amountsOf converts an allowance.
func amountsOf(a org.ModelAllowance) amounts {
	return amounts{requestQuantity: a.Requests, tokenQuantity: a.Tokens, costQuantity: a.Cost, callQuantity: a.Calls}
}

// usageAmounts returns the tokens and the cost of a usage.
func usageAmounts(u model.TokenUsage) amounts {
	return amounts{tokenQuantity: int64(u.Input) + int64(u.Output), costQuantity: int64(u.Cost)}
}

// add adds the amounts of other. No sum exceeds the largest int64.
func (a *amounts) add(other amounts) {
	for q := range quantities {
		a[q] = addSaturated(a[q], other[q])
	}
}

// addSaturated adds two amounts that are not negative, up to the largest int64.
func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// budgetTree has the budget of a task, and the budgets of its agents that were spawned with
// one. The budget of an agent is a part of the budget of its parent. The record of a task
// and the process that works on it have one each.
type budgetTree struct {
	task   budgetNode
	agents map[identity.AgentID]*budgetNode // with a budget, without those that have ended

	warnedTime int64 // the limit of the task's time, in seconds, of which a warning was recorded
}

// budgetNode is one budget of a budgetTree.
type budgetNode struct {
	agent    identity.AgentID // "" is the task
	name     string           // of the agent
	parent   *budgetNode      // nil of the task
	children []*budgetNode    // in the order in which they began

	limit   amounts // zero is no limit: the agent shares its parent's limit
	used    amounts // by the agents that have no budget below this one
	pending amounts // reserved for their requests in progress
	warned  amounts // the limits of which a warning was recorded

	// kept is what is reserved in the budget of the parent, as far as it is unused. It is reserved
	// until the agent has answered, failed or ended. It is the limit, or 0 if only the role limits
	// a quantity.
	kept  amounts
	ended bool // merged into its parent
}

// nodeOf returns the budget that an agent uses. It is its own budget, or the budget of the next
// agent above it that has one. parentOf returns the parent of an agent, "" if there is none.
func (t *budgetTree) nodeOf(id identity.AgentID, parentOf func(identity.AgentID) identity.AgentID) *budgetNode {
	if len(t.agents) == 0 {
		return &t.task
	}
	for id != "" {
		if n := t.agents[id]; n != nil {
			return n
		}
		id = parentOf(id)
	}
	return &t.task
}

// addAgent adds the budget of a new agent below parent, of which a part is reserved there. A limit of
// zero adds none.
func (t *budgetTree) addAgent(parent *budgetNode, id identity.AgentID, name string, limit, reserved amounts) {
	if limit == (amounts{}) {
		return
	}
	n := &budgetNode{agent: id, name: name, parent: parent, limit: limit, kept: reserved}
	parent.children = append(parent.children, n)
	if t.agents == nil {
		t.agents = map[identity.AgentID]*budgetNode{}
	}
	t.agents[id] = n
}

// stopKeeping gives the parent of an agent the unused part of the agent's budget.
func (t *budgetTree) stopKeeping(id identity.AgentID) {
	if n := t.agents[id]; n != nil {
		n.kept = amounts{}
	}
}

// end merges the budget of an agent that has ended into the budget of its parent.
func (t *budgetTree) end(id identity.AgentID) {
	n := t.agents[id]
	if n == nil {
		return
	}
	p := n.parent
	p.used.add(n.used)
	p.pending.add(n.pending)
	p.children = slices.DeleteFunc(p.children, func(c *budgetNode) bool { return c == n })
	for _, c := range n.children {
		c.parent = p
		p.children = append(p.children, c)
	}
	n.ended, n.children = true, nil
	delete(t.agents, id)
}

// resetRequests begins to count requests from zero.
func (t *budgetTree) resetRequests() {
	for n := range t.all {
		n.used[requestQuantity], n.warned[requestQuantity] = 0, 0
	}
}

// all yields the budgets, a parent before its children.
func (t *budgetTree) all(yield func(*budgetNode) bool) {
	for left := []*budgetNode{&t.task}; len(left) > 0; {
		n := left[0]
		if left = append(left[1:], n.children...); !yield(n) {
			return
		}
	}
}

// current returns n, or the budget into which it was merged.
func (n *budgetNode) current() *budgetNode {
	for n.ended {
		n = n.parent
	}
	return n
}

// spend replaces the reservation for a request by the actual usage.
func (n *budgetNode) spend(reserved, used amounts) {
	n = n.current()
	n.used.add(used)
	for q := range quantities {
		n.pending[q] = max(0, n.pending[q]-reserved[q])
	}
}

// sumParts selects what a sum includes besides what was used.
type sumParts struct {
	pending bool // reserved for requests in progress
	kept    bool // reserved for agents
}

// sum returns how much of a quantity is gone from n.
func (n *budgetNode) sum(q quantity, p sumParts) int64 {
	total := n.used[q]
	if p.pending {
		total = addSaturated(total, n.pending[q])
	}
	for _, c := range n.children {
		part := c.sum(q, p)
		if p.kept {
			part = max(part, c.kept[q])
		}
		total = addSaturated(total, part)
	}
	return total
}

// shortage says which budget has no room.
type shortage struct {
	node     *budgetNode
	quantity quantity
	left     int64 // that may be used or reserved
	pending  bool  // it has room without the requests in progress
}

// shortage returns the budget that has no room for need, n or one above it, nil if all have.
// One that has no room without the requests in progress comes first.
func (n *budgetNode) shortage(need amounts) *shortage {
	var first *shortage
	for q := range quantities {
		p := sumParts{pending: true, kept: true}
		for at := n; at != nil && need[q] > 0; at = at.parent {
			s := at.missing(q, need[q], p)
			switch {
			case s != nil && !s.pending:
				return s
			case first == nil:
				first = s
			}
			if at.kept[q] > 0 {
				p.kept = false // the budgets above have reserved it
			}
		}
	}
	return first
}

// missing returns a shortage if n itself has no room for need.
func (n *budgetNode) missing(q quantity, need int64, p sumParts) *shortage {
	limit := n.limit[q]
	if limit <= 0 {
		return nil
	}
	left := limit - n.sum(q, p)
	if left >= need {
		return nil
	}
	p.pending = false
	return &shortage{node: n, quantity: q, left: max(0, left), pending: limit-n.sum(q, p) >= need}
}

// nearlySpent reports whether at least percent of a limit of n was used.
func (n *budgetNode) nearlySpent(q quantity, percent int) bool {
	return n.limit[q] > 0 && percent > 0 && float64(n.sum(q, sumParts{})) >= float64(n.limit[q])*float64(percent)/100
}
