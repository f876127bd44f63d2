package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// shutdownTimeout limits how long a shutdown waits for responses in progress.
const shutdownTimeout = 5 * time.Second

// Serve serves handler on l until ctx ends. It then closes l, ends the streams that
// follow a task, and waits up to five seconds for other responses. It returns when all
// handlers have returned. It returns the error of the listener. Other errors of the
// server, such as connections that cannot be accepted, go to log; nil discards them.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, log *slog.Logger) error {
	serving, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	var work sync.WaitGroup
	server := &http.Server{
		Handler:           withWaitGroup(&work, trackRequests(handler)),
		ConnContext:       withConn,
		ConnState:         handleConnState,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          errorLog(log),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), shutdownKey{}, serving)
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return errors.Join(err, shutdownServer(server, &work))
	case <-ctx.Done():
	}
	shutdown()
	err := shutdownServer(server, &work)
	if cause := <-ended; !errors.Is(cause, http.ErrServerClosed) {
		err = errors.Join(err, cause)
	}
	return err
}

// shutdownServer stops a server and waits for its handlers. After
// shutdownTimeout it closes their connections.
func shutdownServer(server *http.Server, work *sync.WaitGroup) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	work.Wait()
	return err
}

// withWaitGroup adds running handlers to work. http.Server.Close does not wait
// for them.
func withWaitGroup(work *sync.WaitGroup, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		work.Add(1)
		defer work.Done()
		next.ServeHTTP(w, r)
	})
}
