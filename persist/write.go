package persist

import (
	"encoding/binary"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// position is the stream and the sequence number of an event.
type position struct {
	stream identity.AgentID
	seq    uint64
}

// writer writes batches in one transaction. Its integrity record becomes the record of the store
// when the transaction is on disk.
type writer struct {
	due       delayedIndex // of the store, changed in place: a failed write stops the store
	integrity integrityRecord
	positions []position // of the events written

	log, index, inbox, delayed, runnable, records bucketWriter
}

// openBuckets opens the buckets of a transaction.
func (w *writer) openBuckets(tx *bolt.Tx) {
	for i, s := range []*bucketWriter{layoutLog: &w.log, layoutIndex: &w.index, layoutInbox: &w.inbox, layoutDelayed: &w.delayed, layoutRunnable: &w.runnable, layoutRecords: &w.records} {
		*s = bucketWriter{Bucket: tx.Bucket(layout[i].name), name: layout[i].name, kind: layout[i].kind, sum: &w.integrity.buckets[i]}
	}
	w.log.FillPercent, w.records.FillPercent = 0.95, 0.9 // keys are appended, or mostly so
}

// bucketWriter is a bucket whose sum is kept up to date.
type bucketWriter struct {
	*bolt.Bucket
	name []byte
	kind byte
	sum  *bucketSum
}

// put writes a payload in a frame.
func (w *bucketWriter) put(key, payload []byte) error {
	if old := w.Get(key); old != nil {
		w.sum.remove(hashEntry(key, old))
	}
	f := frame(w.name, key, w.kind, payload)
	w.sum.add(hashEntry(key, f))
	return w.Put(key, f)
}

// remove removes a key, if it exists.
func (w *bucketWriter) remove(key []byte) error {
	old := w.Get(key)
	if old == nil {
		return nil
	}
	w.sum.remove(hashEntry(key, old))
	return w.Delete(key)
}

// writeBatch writes the parts of a batch in this order. The errors of all parts are joined: the
// transaction is rolled back if there is any.
func (w *writer) writeBatch(c *commit) error {
	b := c.batch
	return errors.Join(
		w.writeEvents(c),
		w.consume(b.Stream, b.Consume),
		w.send(b.Send, c.sendJSON),
		w.deliverDue(b.Deliver, c.deliverJSON),
		w.purge(b.Purge),
		w.putRecords(b.Put),
		w.updateRunnable(b),
	)
}

// nextSeq returns a new sequence number.
func (w *writer) nextSeq() uint64 {
	w.integrity.seq++
	return w.integrity.seq
}

func (w *writer) writeEvents(c *commit) error {
	for i, payload := range c.events {
		e := &c.batch.Events[i]
		e.Seq = w.nextSeq()
		if err := w.log.put(numberKey(e.Seq), payload); err != nil {
			return err
		}
		w.positions = append(w.positions, position{e.Stream, e.Seq})
	}
	return nil
}

func (w *writer) send(messages []journal.Message, payloads [][]byte) error {
	for i := range messages {
		m := &messages[i]
		m.Seq = w.nextSeq()
		if err := w.deliver(m, payloads[i]); err != nil {
			return err
		}
	}
	return nil
}

// deliver writes a message to the inbox of its recipient, or to the delayed messages if it
// has a due time.
func (w *writer) deliver(m *journal.Message, payload []byte) error {
	to := identity.AgentID(m.To)
	if !m.Due.IsZero() {
		key := dueKey(m)
		w.due.add(to, key)
		return w.delayed.put(key, payload)
	}
	if err := w.inbox.put(agentSeqKey(to, m.Seq), payload); err != nil {
		return err
	}
	return w.markRunnable(to)
}

// markRunnable marks an agent as runnable. It does not rewrite a valid mark.
func (w *writer) markRunnable(id identity.AgentID) error {
	key := agentKey(id)
	if _, err := unframe(w.runnable.name, key, w.runnable.kind, w.runnable.Get(key)); err == nil {
		return nil
	}
	return w.runnable.put(key, nil)
}

// deliverDue moves delayed messages to the ends of their inboxes.
func (w *writer) deliverDue(messages []journal.Message, payloads [][]byte) error {
	for i, m := range messages {
		key := dueKey(&m)
		if w.delayed.Get(key) == nil { // delivered before, or purged
			continue
		}
		w.due.remove(identity.AgentID(m.To), key)
		if err := w.delayed.remove(key); err != nil {
			return err
		}
		m.Due, m.Seq = time.Time{}, w.nextSeq()
		if err := w.deliver(&m, payloads[i]); err != nil {
			return err
		}
	}
	return nil
}

// consume removes messages from the inbox of a stream.
func (w *writer) consume(stream identity.AgentID, taken []uint64) error {
	for _, seq := range taken {
		if err := w.inbox.remove(agentSeqKey(stream, seq)); err != nil {
			return err
		}
	}
	return nil
}

// purge removes all messages for terminated agents and their runnable marks.
func (w *writer) purge(agents []identity.AgentID) error {
	for _, id := range agents {
		for _, key := range w.inboxKeys(id) {
			if err := w.inbox.remove(key); err != nil {
				return err
			}
		}
		for key := range w.due[id] {
			if err := w.delayed.remove([]byte(key)); err != nil {
				return err
			}
		}
		delete(w.due, id)
		if err := w.runnable.remove(agentKey(id)); err != nil {
			return err
		}
	}
	return nil
}

// inboxKeys returns the keys of an agent's inbox.
func (w *writer) inboxKeys(id identity.AgentID) [][]byte {
	var list [][]byte
	for key := range withPrefix(w.inbox.Bucket, agentKey(id)) {
		list = append(list, key)
	}
	return list
}

// putRecords writes records, and removes those with a nil Value.
func (w *writer) putRecords(records []journal.Record) error {
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

// updateRunnable updates the runnable mark of the batch's agent. The agent is runnable unless
// it is idle and its inbox is empty.
func (w *writer) updateRunnable(b *journal.Batch) error {
	switch {
	case b.Stream == journal.Org:
		return nil
	case !b.Idle:
		return w.markRunnable(b.Stream)
	}
	for range withPrefix(w.inbox.Bucket, agentKey(b.Stream)) {
		return w.markRunnable(b.Stream)
	}
	return w.runnable.remove(agentKey(b.Stream))
}

// checkpoint writes the index of all events since the last checkpoint, if there are enough of
// them.
func (w *writer) checkpoint(s *Store) error {
	if s.tailLen+len(w.positions) < checkpoint {
		return nil
	}
	all := make(map[identity.AgentID][]uint64, len(s.tail))
	for stream, seqs := range s.tail {
		all[stream] = seqs
	}
	for _, p := range w.positions {
		all[p.stream] = append(all[p.stream], p.seq)
	}
	for stream, seqs := range all {
		if err := w.index.put(agentSeqKey(stream, seqs[0]), packSeqs(seqs)); err != nil {
			return err
		}
	}
	w.integrity.indexed = w.integrity.seq
	return nil
}

// dueKey returns the key of a delayed message.
func dueKey(m *journal.Message) []byte {
	return binary.BigEndian.AppendUint64(numberKey(uint64(m.Due.UnixNano())), m.Seq)
}

// packSeqs encodes ascending numbers as varints of their differences.
func packSeqs(seqs []uint64) []byte {
	var out []byte
	var last uint64
	for _, seq := range seqs {
		out = binary.AppendUvarint(out, seq-last)
		last = seq
	}
	return out
}

// unpackSeqs decodes the result of packSeqs.
func unpackSeqs(data []byte) ([]uint64, error) {
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
