package job

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// engine is a NATS server in this process. It listens nowhere: only this process
// reaches it, through memory.
type engine struct {
	server  *server.Server
	streams []string               // that were in its folder before it started
	files   map[string]os.FileInfo // of records, as they were then
}

// startTime is how long a server may take to read its files, or to make them.
const startTime = time.Minute

func startEngine(c Config, heard func(text string)) (*engine, error) {
	e := &engine{}
	if err := e.look(c.Dir); err != nil {
		return nil, err
	}
	var err error
	if e.server, err = server.NewServer(&server.Options{
		ServerName: "memorymark", DontListen: true, JetStream: true, StoreDir: c.Dir,
		SyncAlways: !c.unsynced, // what is acknowledged survives a power failure
		MaxPayload: MaxPayload + MaxPayload/2,
		// The free space of the disk is checked when something is stored, not once.
		JetStreamMaxStore: math.MaxInt64 / 2,
		NoLog:             true, NoSigs: true, DisableJetStreamBanner: true,
	}); err != nil {
		return nil, err
	}
	e.server.SetLoggerV2(&engineLog{c.Log, heard}, false, false, false)
	e.server.Start()
	if !e.server.ReadyForConnections(startTime) {
		e.stop()
		return nil, fmt.Errorf("the engine on %s did not start; is another process using that folder?", c.Dir)
	}
	if !e.server.JetStreamEnabled() {
		e.stop()
		return nil, fmt.Errorf("the engine cannot use %s; see the log", c.Dir)
	}
	return e, nil
}

// look notes what is in the folder.
func (e *engine) look(dir string) error {
	files := os.DirFS(dir) // whose own name may have brackets
	folders, err := fs.Glob(files, "jetstream/*/streams/*")
	if err != nil {
		return err
	}
	e.files = make(map[string]os.FileInfo)
	for _, folder := range folders {
		e.streams = append(e.streams, path.Base(folder))
		blocks, err := fs.Glob(files, path.Join(folder, "msgs", "*.blk"))
		if err != nil {
			return err
		}
		for _, block := range blocks {
			if info, err := fs.Stat(files, block); err == nil && info.Size() > 0 {
				e.files[filepath.Join(dir, block)] = info
			}
		}
	}
	return nil
}

func (e *engine) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// engineLog passes the engine's warnings on.
type engineLog struct {
	log   *slog.Logger
	heard func(text string) // gets every warning and error
}

func (l *engineLog) say(level slog.Level, format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if level >= slog.LevelWarn {
		l.heard(text)
	}
	l.log.Log(context.Background(), level, text, "from", "engine")
}

func (l *engineLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v...) }
func (l *engineLog) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v...) }
func (l *engineLog) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v...) }
func (l *engineLog) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v...) }
func (l *engineLog) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v...) }
func (l *engineLog) Tracef(format string, v ...any)  { l.say(slog.LevelDebug, format, v...) }
