package memory

import (
	"slices"
	"sort"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// log holds the events of all streams in one order. It grows in blocks, so
// that none is ever moved.
type log struct {
	blocks [][]entry
	size   int
	last   map[identity.AgentID]int // place of a stream's last event, from 1
}

// entry is an event and the place of the one before in its stream; 0 is none.
type entry struct {
	event  journal.Event
	before int
}

const block = 256

func (l *log) append(e journal.Event) {
	if l.size%block == 0 {
		l.blocks = append(l.blocks, make([]entry, 0, block))
	}
	end := &l.blocks[len(l.blocks)-1]
	*end = append(*end, entry{e, l.last[e.Stream]})
	l.size++
	l.last[e.Stream] = l.size
}

// at gives the entry at a place, from 1.
func (l *log) at(place int) *entry { return &l.blocks[(place-1)/block][(place-1)%block] }

// stream lists the events of a stream behind a number.
func (l *log) stream(id identity.AgentID, after uint64) []journal.Event {
	var list []journal.Event
	for place := l.last[id]; place > 0; {
		e := l.at(place)
		if e.event.Seq <= after {
			break
		}
		list = append(list, e.event)
		place = e.before
	}
	slices.Reverse(list)
	return list
}

// since lists some events behind a number.
func (l *log) since(after uint64) []journal.Event {
	first := 1 + sort.Search(l.size, func(i int) bool { return l.at(i+1).event.Seq > after })
	var list []journal.Event
	for place := first; place <= l.size && len(list) < block; place++ {
		list = append(list, l.at(place).event)
	}
	return list
}
