package jsworker

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/internal/js"
)

// machines holds the virtual machines of a worker.
type machines struct {
	scripts  []Script
	recent   *list.List // of machine, the most recently used first
	byNumber map[uint64]*list.Element
	resident func() int64 // bytes of memory of the process; nil if unknown
}

// machine is one virtual machine with its number.
type machine struct {
	number uint64
	vm     *js.VM
}

// newMachines returns no machines, in a process whose memory resident returns.
func newMachines(resident func() int64) *machines {
	return &machines{recent: list.New(), byNumber: map[uint64]*list.Element{}, resident: resident}
}

// maxUnmeasured is how many virtual machines a worker keeps that cannot find out how much memory
// it has.
const maxUnmeasured = 128

// makeRoom closes the machines that are not needed any more. It also closes the least
// recently used machines while the worker has more memory than the request allows. It never
// closes the machine that the request is for. It returns the least recently used machines
// that it has closed.
func (m *machines) makeRoom(q request) (lost []uint64) {
	for _, number := range q.Closed {
		m.close(m.byNumber[number])
	}
	for q.Memory > 0 {
		oldest := m.recent.Back()
		if oldest == nil || oldest.Value.(machine).number == q.VM || !m.exceeds(q.Memory) {
			break
		}
		lost = append(lost, oldest.Value.(machine).number)
		m.close(oldest)
	}
	return lost
}

// exceeds reports whether the worker has more than so many bytes of memory. If they are
// unknown, the number of machines counts.
func (m *machines) exceeds(memory int64) bool {
	if m.resident == nil {
		return m.recent.Len() > maxUnmeasured
	}
	return m.resident() > memory
}

// memory returns the bytes of memory of the worker, 0 if they are unknown.
func (m *machines) memory() int64 {
	if m.resident == nil {
		return 0
	}
	return m.resident()
}

// perform performs a request for a machine.
func (m *machines) perform(ctx context.Context, q request) response {
	switch q.Op {
	case opTrim:
		return response{}
	case opLoad:
		return newStepResponse(nil, m.load(q))
	case opCall:
		return newStepResponse(m.call(ctx, q))
	}
	return newStepResponse(nil, fmt.Errorf("operation %q is unknown", q.Op))
}

// load makes a machine and loads the scripts.
func (m *machines) load(q request) error {
	if q.Scripts != nil {
		m.scripts = q.Scripts
	}
	vm, err := js.New(*q.Limits)
	if err != nil {
		return err
	}
	for _, s := range m.scripts {
		if err := vm.LoadScript(s.Name, s.Source); err != nil {
			vm.Close()
			return err
		}
	}
	m.byNumber[q.VM] = m.recent.PushFront(machine{q.VM, vm})
	return nil
}

// call calls a function of a machine.
func (m *machines) call(ctx context.Context, q request) (json.RawMessage, error) {
	e := m.byNumber[q.VM]
	if e == nil {
		return nil, fmt.Errorf("virtual machine %d is unknown", q.VM)
	}
	m.recent.MoveToFront(e)
	value, err := e.Value.(machine).vm.CallFunction(ctx, q.Function, q.Input)
	if len(value) > MaxStep {
		return nil, errTooLarge("returned", len(value))
	}
	return value, err
}

// close frees a machine; nil is ignored.
func (m *machines) close(e *list.Element) {
	if e == nil {
		return
	}
	closed := m.recent.Remove(e).(machine)
	delete(m.byNumber, closed.number)
	closed.vm.Close()
}

// closeAll frees all machines.
func (m *machines) closeAll() {
	for m.recent.Len() > 0 {
		m.close(m.recent.Back())
	}
}

// MaxStep is the maximum size in bytes of the argument and of the result of VM.CallFunction.
const MaxStep = 16 << 20

// errTooLarge returns the error for an argument or a result that is too large.
func errTooLarge(what string, size int) error {
	return &js.Error{Kind: js.KindMemory, Message: fmt.Sprintf("the script %s %d bytes of JSON in one step: it may be %d", what, size, MaxStep)}
}
