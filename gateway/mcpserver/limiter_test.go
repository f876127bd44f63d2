package mcpserver_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
)

func TestLimiter_SendersShareListSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mcpserver.NewConcurrencyLimiter(0)
		acquired, release := make(chan identity.UserName, 100), make(chan struct{})
		var lists sync.WaitGroup
		list := func(user identity.UserName) {
			lists.Go(func() {
				done, err := l.AcquireList(t.Context(), identity.ByCaller(user, "clerk"))
				if err != nil {
					t.Error(err)
					return
				}
				acquired <- user
				<-release
				done()
			})
		}
		for range 64 {
			list("ann")
		}
		synctest.Wait()
		if most := max(4, 2*runtime.NumCPU()) / 2; len(acquired) != most {
			t.Errorf("%d lists of one sender at once, want %d", len(acquired), most)
		}
		for len(acquired) > 0 {
			<-acquired
		}
		list("bob")
		synctest.Wait()
		if len(acquired) != 1 || <-acquired != "bob" {
			t.Error("the first list of another sender waits")
		}
		close(release)
		lists.Wait()
	})
}
