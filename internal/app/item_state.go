package app

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/runtime"
)

// itemState is an applied item and what became of it.
type itemState struct {
	config.Item
	status        string // one of wire.ItemActive and the others
	reason        error  // why it is not active
	keepsPrevious bool   // it is broken, and the version before is in service
}

// itemStates are the applied items in the order in which they were applied.
type itemStates []itemState

// newItemStates returns stored items. Those whose name a file has are in conflict.
func newItemStates(stored []runtime.StoredItem, files *config.Config) (list itemStates) {
	for _, s := range stored {
		i := itemState{Item: config.Item{Kind: s.Kind, Name: s.Name, Text: s.Text}, status: wire.ItemActive}
		if at, found := files.FindDocument(s.Kind, s.Name); found {
			i.status, i.reason = wire.ItemConflict, fmt.Errorf("%s %s is declared at %s; the file counts", s.Kind, yamldoc.QuoteText(s.Name), at)
		}
		list = append(list, i)
	}
	return list
}

// included returns the items that a change tries to make active.
func (list itemStates) included() (items []config.Item) {
	for _, i := range list {
		if i.status == wire.ItemActive {
			items = append(items, i.Item)
		}
	}
	return items
}

// leaveOutFaulty leaves out the items that errors are about. It reports whether there are any.
func (list itemStates) leaveOutFaulty(err error) (found bool) {
	all, _ := errors.AsType[yamldoc.Errors](err)
	for n, i := range list {
		if own := errorsOf(i.Item, all); own != nil && i.status == wire.ItemActive {
			list[n].status, list[n].reason, found = wire.ItemBroken, own, true
		}
	}
	return found
}

// errorsOf returns the errors of an item, nil if there are none.
func errorsOf(i config.Item, all yamldoc.Errors) error {
	own := slices.DeleteFunc(slices.Clone(all), func(e *yamldoc.Error) bool { return e.File != i.Path() })
	if len(own) == 0 {
		return nil
	}
	return own
}

// leaveOutNewest leaves out the item that was applied last, because of an error that is at no
// item. It reports whether there is one.
func (list itemStates) leaveOutNewest(err error) bool {
	for n := len(list) - 1; n >= 0; n-- {
		if list[n].status == wire.ItemActive {
			list[n].status, list[n].reason = wire.ItemBroken, err
			return true
		}
	}
	return false
}

// leaveOut leaves out the items that err is about, or the newest one.
func (list itemStates) leaveOut(err error) bool {
	return list.leaveOutFaulty(err) || list.leaveOutNewest(err)
}

// afterFailures returns the states after a change whose modules may have failed to start. A tool
// service that failed is broken, and so are its tools.
func (list itemStates) afterFailures(ch *configChange) itemStates {
	list = slices.Clone(list)
	for n, i := range list {
		at := slices.Index(ch.failedModules, moduleOf(ch.cfg, i.Item))
		if i.status != wire.ItemActive || at < 0 {
			continue
		}
		name := ch.failedModules[at]
		list[n].status, list[n].keepsPrevious = wire.ItemBroken, slices.Contains(ch.stale, name)
		list[n].reason = fmt.Errorf("the module %s failed to start: %w", name, ch.moduleErrors[at])
	}
	return list
}

// moduleOf returns the name of the module that has an item; "" if it needs none.
func moduleOf(cfg *config.Config, i config.Item) string {
	switch i.Kind {
	case kindService:
		return i.Name
	case "tool":
		at := slices.IndexFunc(cfg.Tools, func(t toolboxfile.DeclaredTool) bool { return t.Name == i.Name })
		if at >= 0 {
			return toolModule(cfg.Tools[at])
		}
	}
	return ""
}

// find returns the state of an item.
func (list itemStates) find(kind, name string) (itemState, bool) {
	at := slices.IndexFunc(list, func(i itemState) bool { return i.Kind == kind && i.Name == name })
	if at < 0 {
		return itemState{}, false
	}
	return list[at], true
}

// describe returns what is wrong with an item, on one line.
func (i itemState) describe() string {
	text := fmt.Sprintf("applied item %s/%s is %s", i.Kind, i.Name, i.status)
	if i.reason != nil {
		text += ": " + errorReason(i.reason)
	}
	return text
}

// wire returns the item as clients see it.
func (i itemState) wire() wire.ConfigItem {
	sum := sha256.Sum256([]byte(i.Text))
	out := wire.ConfigItem{Kind: i.Kind, Name: i.Name, Status: i.status, Kept: i.keepsPrevious, Digest: hex.EncodeToString(sum[:])}
	if i.reason != nil {
		out.Reason = errorReason(i.reason)
	}
	return out
}
