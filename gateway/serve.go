package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// grace is how long a shutdown waits for answers that are under way.
const grace = 5 * time.Second

// Serve answers on l until ctx ends, and closes l. Then it takes no more
// requests, ends the streams that follow a task, lets the other answers
// finish for a few seconds, and returns when nothing of it runs any more. Its
// error is the listener's.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	serving, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	var work sync.WaitGroup
	server := &http.Server{
		Handler:           counted(&work, handler),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), shutdownKey{}, serving)
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return errors.Join(err, stop(server, &work))
	case <-ctx.Done():
	}
	shutdown()
	err := stop(server, &work)
	if cause := <-ended; !errors.Is(cause, http.ErrServerClosed) {
		err = errors.Join(err, cause)
	}
	return err
}

// stop ends a server and waits for its handlers; what does not end in time
// loses its connection.
func stop(server *http.Server, work *sync.WaitGroup) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	work.Wait()
	return err
}

func counted(work *sync.WaitGroup, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		work.Add(1)
		defer work.Done()
		next.ServeHTTP(w, r)
	})
}
