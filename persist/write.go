package persist

import (
	"encoding/binary"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

type place struct {
	stream identity.AgentID
	seq    uint64
}

// writer puts batches into one transaction. What it does to ledger counts when
// the transaction is on disk.
type writer struct {
	held   delayedIndex // that of the store: it is used no more when a write fails
	ledger integrityRecord
	places []place // of the events written

	log, index, inbox, delayed, runnable, records bucketWriter
}

func (w *writer) open(tx *bolt.Tx) {
	for i, s := range []*bucketWriter{inLog: &w.log, inIndex: &w.index, inInbox: &w.inbox, inDelayed: &w.delayed, inRunnable: &w.runnable, inRecords: &w.records} {
		*s = bucketWriter{Bucket: tx.Bucket(layout[i].name), name: layout[i].name, kind: layout[i].kind, tally: &w.ledger.buckets[i]}
	}
	w.log.FillPercent, w.records.FillPercent = 0.95, 0.9 // keys grow, or mostly do
}

// bucketWriter is a bucket that is written, with its tally.
type bucketWriter struct {
	*bolt.Bucket
	name  []byte
	kind  byte
	tally *bucketSum
}

// put writes a framed payload.
func (s *bucketWriter) put(key, payload []byte) error {
	if s.Get(key) == nil {
		s.tally.add(key)
	}
	return s.Put(key, frame(s.name, key, s.kind, payload))
}

func (s *bucketWriter) remove(key []byte) error {
	if s.Get(key) == nil {
		return nil
	}
	s.tally.remove(key)
	return s.Delete(key)
}

func (w *writer) batch(c *commit) error {
	b := c.batch
	return errors.Join(
		w.events(c),
		w.consume(b.Stream, b.Consume),
		w.post(b.Send, c.post),
		w.deliverDue(b.Deliver, c.arrived),
		w.purge(b.Purge),
		w.put(b.Put),
		w.updateRunnable(b),
	)
}

func (w *writer) next() uint64 {
	w.ledger.seq++
	return w.ledger.seq
}

func (w *writer) events(c *commit) error {
	for i, payload := range c.events {
		e := &c.batch.Events[i]
		e.Seq = w.next()
		if err := w.log.put(numberKey(e.Seq), payload); err != nil {
			return err
		}
		w.places = append(w.places, place{e.Stream, e.Seq})
	}
	return nil
}

func (w *writer) post(messages []journal.Message, payloads [][]byte) error {
	for i := range messages {
		m := &messages[i]
		m.Seq = w.next()
		if err := w.deliver(m, payloads[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) deliver(m *journal.Message, payload []byte) error {
	to := identity.AgentID(m.To)
	if !m.Due.IsZero() {
		key := dueKey(m)
		w.held.add(to, key)
		return w.delayed.put(key, payload)
	}
	if err := w.inbox.put(agentSeqKey(to, m.Seq), payload); err != nil {
		return err
	}
	return w.markRunnable(to)
}

// markRunnable marks an agent. The mark never changes: one that is there stays.
func (w *writer) markRunnable(id identity.AgentID) error {
	key := agentKey(id)
	if _, err := unframe(w.runnable.name, key, w.runnable.kind, w.runnable.Get(key)); err == nil {
		return nil
	}
	return w.runnable.put(key, nil)
}

// deliverDue moves delayed messages to their inboxes, behind what is there.
func (w *writer) deliverDue(messages []journal.Message, payloads [][]byte) error {
	for i, m := range messages {
		key := dueKey(&m)
		if w.delayed.Get(key) == nil { // it has arrived, or was let go
			continue
		}
		w.held.remove(identity.AgentID(m.To), key)
		if err := w.delayed.remove(key); err != nil {
			return err
		}
		m.Due, m.Seq = time.Time{}, w.next()
		if err := w.deliver(&m, payloads[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) consume(stream identity.AgentID, taken []uint64) error {
	for _, seq := range taken {
		if err := w.inbox.remove(agentSeqKey(stream, seq)); err != nil {
			return err
		}
	}
	return nil
}

// purge lets go what waits for agents that are no more.
func (w *writer) purge(agents []identity.AgentID) error {
	for _, id := range agents {
		for _, key := range w.waitingFor(id) {
			if err := w.inbox.remove(key); err != nil {
				return err
			}
		}
		for key := range w.held[id] {
			if err := w.delayed.remove([]byte(key)); err != nil {
				return err
			}
		}
		delete(w.held, id)
		if err := w.runnable.remove(agentKey(id)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) waitingFor(id identity.AgentID) [][]byte {
	var list [][]byte
	for key := range under(w.inbox.Bucket, agentKey(id)) {
		list = append(list, key)
	}
	return list
}

func (w *writer) put(records []journal.Record) error {
	for _, r := range records {
		key := recordKey(r.Kind, r.Key)
		if r.Value == nil {
			if err := w.records.remove(key); err != nil {
				return err
			}
			continue
		}
		if err := w.records.put(key, r.Value); err != nil {
			return err
		}
	}
	return nil
}

// updateRunnable keeps the runnable mark of the batch's agent: on while it works, off
// when it is idle and nothing waits for it.
func (w *writer) updateRunnable(b *journal.Batch) error {
	switch {
	case b.Stream == journal.Org:
		return nil
	case !b.Idle:
		return w.markRunnable(b.Stream)
	}
	for range under(w.inbox.Bucket, agentKey(b.Stream)) {
		return w.markRunnable(b.Stream)
	}
	return w.runnable.remove(agentKey(b.Stream))
}

// checkpoint writes the places of all events since the last checkpoint when there
// are enough of them.
func (w *writer) checkpoint(s *Store) error {
	if s.tailLen+len(w.places) < checkpoint {
		return nil
	}
	all := make(map[identity.AgentID][]uint64, len(s.tail))
	for stream, seqs := range s.tail {
		all[stream] = seqs
	}
	for _, p := range w.places {
		all[p.stream] = append(all[p.stream], p.seq)
	}
	for stream, seqs := range all {
		if err := w.index.put(agentSeqKey(stream, seqs[0]), pack(seqs)); err != nil {
			return err
		}
	}
	w.ledger.indexed = w.ledger.seq
	return nil
}

func dueKey(m *journal.Message) []byte {
	return binary.BigEndian.AppendUint64(numberKey(uint64(m.Due.UnixNano())), m.Seq)
}

// pack writes growing numbers as differences.
func pack(seqs []uint64) []byte {
	var out []byte
	var last uint64
	for _, seq := range seqs {
		out = binary.AppendUvarint(out, seq-last)
		last = seq
	}
	return out
}

func unpack(data []byte) ([]uint64, error) {
	var seqs []uint64
	var last uint64
	for len(data) > 0 {
		d, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, journal.ErrDamaged
		}
		last += d
		seqs, data = append(seqs, last), data[n:]
	}
	return seqs, nil
}
