// A contender with go-zookeeper's Lock: see the script `peer` beside this file.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/samuel/go-zookeeper/zk"
)

const killAfter = 5 * time.Second

var id string

func note(event string) {
	const clockMonotonic = 1
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	fmt.Printf("%d %s %s\n", now.Nano(), event, id)
}

// command is started when elected, and ended when the connection says that leadership is in doubt.
type command struct {
	words      []string
	mutex      sync.Mutex
	process    *os.Process // nil while none runs
	barred     bool        // no start: the connection is in doubt
	ending     bool        // nor ever again
	wasStopped bool
	status     int
}

// run says whether the command ended by itself; if not, the peer contends again.
func (c *command) run() bool {
	note("elected")
	c.mutex.Lock()
	c.wasStopped = c.barred || c.ending
	if c.wasStopped {
		c.mutex.Unlock()
		return false
	}
	child := exec.Command(c.words[0], c.words[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.Env = append(os.Environ(), "ZK_LEADER_ID="+id)
	err := child.Start()
	if err != nil {
		c.mutex.Unlock()
		fmt.Fprintln(os.Stderr, id+":", err)
		c.status = 127
		return true
	}
	c.process = child.Process
	c.mutex.Unlock()
	note("started")
	child.Wait()
	note("stopped")
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.process = nil
	c.status = child.ProcessState.ExitCode()
	if ended := child.ProcessState.Sys().(syscall.WaitStatus); ended.Signaled() {
		c.status = 128 + int(ended.Signal())
	}
	return !c.wasStopped
}

func (c *command) stop() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.barred, c.wasStopped = true, true
	if told := c.process; told != nil {
		told.Signal(syscall.SIGTERM)
		time.AfterFunc(killAfter, func() { told.Kill() })
	}
}

func (c *command) allow() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.barred = false
}

func (c *command) isEnding() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.ending
}

// contend goes on until the command ends by itself, or we are told to end, or the library gives up.
func contend(connection *zk.Conn, path string, command *command) (int, error) {
	for {
		note("joined")
		lock := zk.NewLock(connection, path, zk.WorldACL(zk.PermAll))
		err := lock.Lock()
		switch {
		case command.isEnding() && err != nil:
			return 0, nil
		case err == zk.ErrConnectionClosed || err == zk.ErrSessionExpired || err == zk.ErrNoServer:
			fmt.Fprintln(os.Stderr, id+":", err)
			continue
		case err != nil:
			return 1, err
		}
		isOver := command.run()
		if err := lock.Unlock(); err != nil { // with its session the znode is gone as well
			fmt.Fprintln(os.Stderr, id+":", err)
		}
		note("released")
		if command.isEnding() {
			return 0, nil
		}
		if isOver {
			return command.status, nil
		}
	}
}

func main() {
	hosts, path, session := os.Args[2], os.Args[3], os.Args[5]
	id = os.Args[4]
	millis, err := strconv.Atoi(session)
	if err != nil {
		panic(err)
	}
	command := &command{words: os.Args[6:]}
	connection, events, err := zk.Connect(strings.Split(hosts, ","), time.Duration(millis)*time.Millisecond,
		zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	go func() {
		for event := range events {
			switch {
			case event.Type != zk.EventSession:
			case event.State == zk.StateHasSession:
				command.allow()
			case event.State == zk.StateDisconnected || event.State == zk.StateExpired:
				command.stop()
			}
		}
	}()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	var close sync.Once
	go func() {
		<-told
		command.mutex.Lock()
		command.ending = true
		isWaiting := command.process == nil
		command.mutex.Unlock()
		command.stop()
		if isWaiting { // the only way out of Lock
			close.Do(connection.Close)
		}
	}()
	status, err := contend(connection, path, command)
	if err != nil {
		fmt.Fprintln(os.Stderr, id+":", err)
	}
	close.Do(connection.Close)
	os.Exit(status)
}
