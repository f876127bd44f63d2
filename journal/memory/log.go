package memory

import (
	"slices"
	"sort"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// log has the events of all streams in order. It grows in blocks, so no entry
// is ever moved.
type log struct {
	blocks [][]entry
	size   int
	last   map[identity.AgentID]int // index of a stream's last event, from 1
}

// entry is an event and the index of the previous event of its stream, or 0.
type entry struct {
	event    journal.Event
	previous int
}

// blockSize is the number of entries in a block, and the most that since
// returns.
const blockSize = 256

func (l *log) append(e journal.Event) {
	if l.size%blockSize == 0 {
		l.blocks = append(l.blocks, make([]entry, 0, blockSize))
	}
	end := &l.blocks[len(l.blocks)-1]
	*end = append(*end, entry{e, l.last[e.Stream]})
	l.size++
	l.last[e.Stream] = l.size
}

// at returns the entry at an index, from 1.
func (l *log) at(i int) *entry { return &l.blocks[(i-1)/blockSize][(i-1)%blockSize] }

// stream returns the events of a stream after a sequence number.
func (l *log) stream(id identity.AgentID, after uint64) []journal.Event {
	var list []journal.Event
	for i := l.last[id]; i > 0; {
		e := l.at(i)
		if e.event.Seq <= after {
			break
		}
		list = append(list, e.event)
		i = e.previous
	}
	slices.Reverse(list)
	return list
}

// since returns the next events after a sequence number, at most block.
func (l *log) since(after uint64) []journal.Event {
	first := 1 + sort.Search(l.size, func(i int) bool { return l.at(i+1).event.Seq > after })
	var list []journal.Event
	for i := first; i <= l.size && len(list) < blockSize; i++ {
		list = append(list, l.at(i).event)
	}
	return list
}

// before returns the events before a sequence number, newest first, at most block.
func (l *log) before(seq uint64) []journal.Event {
	last := sort.Search(l.size, func(i int) bool { return l.at(i+1).event.Seq >= seq })
	var list []journal.Event
	for i := last; i > 0 && len(list) < blockSize; i-- {
		list = append(list, l.at(i).event)
	}
	return list
}

// seqBefore returns the sequence number of the last event before a time.
func (l *log) seqBefore(at time.Time) uint64 {
	last := sort.Search(l.size, func(i int) bool { return !l.at(i + 1).event.At.Before(at) })
	if last == 0 {
		return 0
	}
	return l.at(last).event.Seq
}
