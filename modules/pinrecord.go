package modules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/toolgroups"
)

// pinRecord is what is on the shelf: {"pins": 1, …}. The zero record is of an
// owner that never offered anything.
type pinRecord struct {
	Version  int        `json:"pins"`
	Prefix   string     `json:"prefix"`
	Accepted []pinEntry `json:"accepted"`
	Offered  []pinEntry `json:"offered"` // at the last contact; those accepted without Pin
	damaged  bool
}

// pinEntry is a definition with its digest, which tells whether it was kept
// well.
type pinEntry struct {
	Tool   string `json:"tool"`
	Digest string `json:"digest"`
	Pin    *Pin   `json:"definition,omitempty"`
}

const pinVersion = 1

// parsePins reads a record. One that is not exactly what write wrote, is
// damaged: it has been seen, and accepts nothing.
func parsePins(value []byte) pinRecord {
	if value == nil {
		return pinRecord{}
	}
	var r pinRecord
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || d.More() || r.Version != pinVersion || !r.sound() {
		return pinRecord{Version: pinVersion, damaged: true}
	}
	return r
}

// sound says whether every digest is that of its definition, every definition
// that is needed is there, and no name stands twice.
func (r pinRecord) sound() bool {
	accepted := make(map[string]string, len(r.Accepted))
	for _, e := range r.Accepted {
		if _, twice := accepted[e.Tool]; twice || e.Pin == nil || !e.holds() {
			return false
		}
		accepted[e.Tool] = e.Digest
	}
	offered := make(map[string]bool, len(r.Offered))
	for _, e := range r.Offered {
		if offered[e.Tool] || e.Pin == nil && accepted[e.Tool] != e.Digest || e.Pin != nil && !e.holds() {
			return false
		}
		offered[e.Tool] = true
	}
	return true
}

func (e pinEntry) holds() bool { return e.Pin.Tool == e.Tool && e.Pin.Digest() == e.Digest }

func entryOf(p Pin) pinEntry { return pinEntry{p.Tool, p.Digest(), &p} }

// offer gives the record after an offer.
func (r pinRecord) offer(prefix string, offered []Pin) pinRecord {
	next := pinRecord{Version: pinVersion, Prefix: prefix, Accepted: r.Accepted, Offered: []pinEntry{}}
	first := r.Version == 0 && !r.damaged
	if first {
		next.Accepted = []pinEntry{}
	}
	for _, p := range offered {
		e := entryOf(p)
		if first {
			next.Accepted = append(next.Accepted, e)
		}
		next.Offered = append(next.Offered, e)
	}
	return next.dropAccepted()
}

// accept gives the record with p accepted.
func (r pinRecord) accept(p Pin) pinRecord {
	r.Version, r.damaged = pinVersion, false
	r.Accepted = slices.DeleteFunc(slices.Clone(r.Accepted), func(e pinEntry) bool { return e.Tool == p.Tool })
	r.Accepted = append(r.Accepted, entryOf(p))
	return r.dropAccepted()
}

// dropAccepted leaves out definitions that stand among the accepted ones.
func (r pinRecord) dropAccepted() pinRecord {
	accepted := r.acceptedByTool()
	r.Offered = slices.Clone(r.Offered)
	for i, e := range r.Offered {
		if a, ok := accepted[e.Tool]; ok && a.Digest == e.Digest {
			r.Offered[i].Pin = nil
		}
	}
	return r
}

func (r pinRecord) acceptedByTool() map[string]pinEntry {
	accepted := make(map[string]pinEntry, len(r.Accepted))
	for _, e := range r.Accepted {
		accepted[e.Tool] = e
	}
	return accepted
}

// same says whether writing other in the place of r would change nothing.
func (r pinRecord) same(other pinRecord) bool {
	byDigest := func(a, b pinEntry) bool { return a.Tool == b.Tool && a.Digest == b.Digest }
	return !r.damaged && r.Version == other.Version && r.Prefix == other.Prefix &&
		slices.EqualFunc(r.Accepted, other.Accepted, byDigest) && slices.EqualFunc(r.Offered, other.Offered, byDigest)
}

// pinned splits what is offered.
func (r pinRecord) pinned(owner toolgroups.Owner) Pinned {
	out := Pinned{Owner: owner, Prefix: r.Prefix, Seen: r.Version != 0 || r.damaged, Damaged: r.damaged}
	accepted := r.acceptedByTool()
	for _, e := range r.Offered {
		a, known := accepted[e.Tool]
		switch {
		case known && a.Digest == e.Digest:
			out.Active = append(out.Active, *a.Pin)
		case known:
			out.Pending = append(out.Pending, PendingTool{owner, r.Prefix + e.Tool, e.Digest, *e.Pin, a.Pin})
		default:
			out.Pending = append(out.Pending, PendingTool{owner, r.Prefix + e.Tool, e.Digest, *e.Pin, nil})
		}
	}
	slices.SortFunc(out.Pending, func(a, b PendingTool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
