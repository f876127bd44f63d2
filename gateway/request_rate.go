package gateway

import (
	"fmt"
	"net/http"
	"time"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
)

// maxRatedSenders is how many senders are remembered for their rates.
const maxRatedSenders = 10_000

// requestRates limits the requests of each authenticated sender in a minute. It is safe for
// concurrent use.
type requestRates struct {
	perMinute func() int // 0 is no limit
	senders   *fair.RateTable[identity.Principal]
}

func newRequestRates(perMinute func() int) requestRates {
	if perMinute == nil {
		perMinute = func() int { return 0 }
	}
	return requestRates{perMinute, fair.NewRateTable[identity.Principal](maxRatedSenders)}
}

// count counts an admitted request. Those of the owner of the data directory, who can lift the
// limit, and those without a sender are not counted.
//
// Errors: RateLimited.
func (l requestRates) count(r *http.Request) error {
	sender, most := auth.SenderOf(r), l.perMinute()
	if most <= 0 || sender == (identity.Principal{}) || sender == auth.LocalOperator() && auth.IsLocalOwner(r) {
		return nil
	}
	l.senders.SetRate(time.Minute/time.Duration(most), most)
	if wait := l.senders.Take(sender.Holder()); wait > 0 {
		return wire.RateLimited(wait, fmt.Sprintf("more than %d requests in a minute", most))
	}
	return nil
}
