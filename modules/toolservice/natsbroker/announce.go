package natsbroker

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// OpenAnnouncements implements broker.Announcer. The announcements have a connection of their own,
// so they slow no call.
func (d *driver) OpenAnnouncements(ctx context.Context, receive func(service, text string)) (stop func(), err error) {
	l := &link{driver: d, service: "announcements", receive: func(broker.Delivery) {}}
	if l.conn, err = d.connect(l); err != nil {
		return nil, err
	}
	if err := d.subscribe(ctx, l, protocol.AllAnnouncements, func(m *nats.Msg) {
		if service, ok := protocol.AnnouncedService(m.Subject); ok && len(m.Data) <= protocol.MaxAnnouncementBytes {
			receive(service, string(m.Data))
		}
	}); err != nil {
		l.conn.Close()
		return nil, fmt.Errorf("%w: %s: %w", broker.ErrUnavailable, d.config.Name, err)
	}
	return func() { _ = l.Close() }, nil // Close returns no error
}
