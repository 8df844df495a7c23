/**
 * The programs that the suite runs inside, by name. Each is a shell script whose `$0` is `caisson:<name>`, so a runtime
 * without a shell (the fake one) can recognize it and do the same itself. They only use what every small image has: sh,
 * coreutils or busybox.
 */
const scripts = {
  /** Writes its first argument to stdout, the second to stderr. */
  print: 'printf %s "$1"; printf %s "$2" >&2',
  exit: 'exit "$1"',
  "signal-self": 'kill -s "$1" $$; sleep 60',
  variable: 'printenv "$1"',
  environment: "env",
  folder: "pwd -P",
  user: "id -u",
  /** Writes a file's bytes to stdout. */
  show: 'cat -- "$1"',
  /** Writes the same file to stdout and to stderr, interleaved by the kernel. */
  "show-both": 'cat -- "$1" & cat -- "$1" >&2; wait',
  copy: "exec cat",
  sleep: 'exec sleep "$1"',
  /** Appends a line to a file each time it starts, prints `ready`, then copies stdin. */
  "mark-and-copy": 'echo started >> "$1"; echo ready; exec cat',
  "print-then-copy": 'printf %s "$1"; exec cat',
  /** Reads nothing until the file exists, then prints how many bytes arrived. */
  "count-late": 'echo ready; while [ ! -e "$1" ]; do sleep 0.05; done; wc -c',
  /**
   * Starts a leader, a child in its own session and an orphan, which all sleep for the given time; the list identifies
   * them by it.
   */
  family: 'setsid sleep "$1" >/dev/null 2>&1 </dev/null & (sleep "$1" >/dev/null 2>&1 </dev/null &); echo ready; wait',
  /** Like `family`, but the leader exits immediately. */
  abandon: 'setsid sleep "$1" >/dev/null 2>&1 </dev/null & echo ready',
  "exit-on-term": 'trap "exit 7" TERM; sleep "$1" >/dev/null 2>&1 </dev/null & echo ready; while :; do wait; done',
  "ignore-term": 'trap "" TERM; echo ready; while :; do sleep 1; done',
  /** Writes $1 blocks of 64 KiB, and records the number of written blocks in the file $2 after each. */
  blocks: 'i=0; while [ $i -lt "$1" ]; do head -c 65536 /dev/zero; i=$((i+1)); echo $i > "$2"; done',
  zeros: 'head -c "$1" /dev/zero',
  terminal: "if [ -t 0 ] && [ -t 1 ] && [ -t 2 ]; then echo terminal; else echo plain; fi; stty size; read line; stty size",
  "is-terminal": "if [ -t 0 ] || [ -t 1 ]; then echo terminal; else echo plain; fi",
  "ready-and-sleep": 'echo ready; exec sleep "$1"',
  ticks: "while :; do echo tick; sleep 0.02; done",
  link: 'ln -s -- "$1" "$2"',
  "hard-link": 'ln -- "$1" "$2"',
  fifo: 'mkfifo -- "$1"',
  /**
   * Listens on a loopback port of its choice, prints it, and echoes each connection's bytes after the last one. Exit 3:
   * no program for it.
   */
  serve: [
    "if command -v python3 >/dev/null; then exec python3 -c '",
    "import socket",
    's=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(8); print(s.getsockname()[1],flush=True)',
    "while True:",
    ' c,_=s.accept(); got=b""',
    " while True:",
    "  d=c.recv(65536)",
    "  if not d: break",
    "  got+=d",
    " c.sendall(got); c.close()';",
    "elif command -v node >/dev/null; then exec node -e '",
    'require("net").createServer({allowHalfOpen:true},c=>{const g=[];c.on("error",()=>{});c.on("data",d=>g.push(d));c.on("end",()=>c.end(Buffer.concat(g)))})',
    '.listen(0,"127.0.0.1",function(){console.log(this.address().port)})\';',
    "elif command -v perl >/dev/null; then exec perl -MIO::Socket::INET -e '",
    '$|=1; $s=IO::Socket::INET->new(Listen=>8,LocalAddr=>"127.0.0.1",LocalPort=>0); print $s->sockport,"\\n";',
    "while($c=$s->accept){local $/;$d=<$c>;print $c $d;close $c}';",
    "elif nc --help 2>&1 | grep -q -e '-ll with -e'; then port=$((20000 + $$ % 20000)); nc -ll -p $port -e cat &",
    'until grep -q ":$(printf %04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done; echo $port; wait',
    "else exit 3; fi",
  ].join("\n"),
  /**
   * Connects to port $1 of address $2, sends its stdin, closes that half, and writes the reply. Exit 3: no program for
   * it.
   */
  dial: [
    "if command -v python3 >/dev/null; then exec python3 -c '",
    "import os,socket,sys,threading",
    "s=socket.create_connection((sys.argv[2],int(sys.argv[1])))",
    "def up():",
    " try:",
    '  for d in iter(lambda: os.read(0,65536), b""): s.sendall(d)',
    "  s.shutdown(1)",
    " except OSError: pass",
    "threading.Thread(target=up,daemon=True).start()",
    'for d in iter(lambda: s.recv(65536), b""): sys.stdout.buffer.write(d)',
    'sys.stdout.buffer.flush(); os._exit(0)\' "$1" "$2";',
    "elif command -v node >/dev/null; then exec node -e '",
    'const c=require("net").connect({port:+process.argv[1],host:process.argv[2],allowHalfOpen:true});',
    'process.stdin.pipe(c);c.pipe(process.stdout);c.on("error",()=>process.exit(4))\' "$1" "$2";',
    "elif command -v perl >/dev/null; then exec perl -MIO::Socket::INET -e '",
    "$c=IO::Socket::INET->new(PeerAddr=>$ARGV[1],PeerPort=>$ARGV[0]) or exit 4; local $/; print $c <STDIN>;",
    '$c->shutdown(1); print <$c>\' "$1" "$2";',
    'elif command -v nc >/dev/null; then exec nc "$2" "$1"',
    "else exit 3; fi",
  ].join("\n"),
  /** Prints the IPv4 addresses of a name. Exit 3: no program for it. */
  resolve: [
    'if command -v getent >/dev/null; then exec getent ahostsv4 "$1"',
    "elif command -v python3 >/dev/null; then exec python3 -c 'import socket,sys; print(socket.gethostbyname(sys.argv[1]))' \"$1\"",
    "else exit 3; fi",
  ].join("\n"),
  /** Queries an address for a name in one datagram, and prints who answered. Exit 3: no program for it. */
  "ask-datagram": [
    "if command -v python3 >/dev/null; then exec python3 -c '",
    "import socket,sys",
    "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(5)",
    's.sendto(b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x01x\\x00\\x00\\x01\\x00\\x01",(sys.argv[1],53))',
    'answer,who=s.recvfrom(65535); print("answered by",who[0]) if answer[:2]==b"\\x12\\x34" else sys.exit(4)\' "$1"',
    "else exit 3; fi",
  ].join("\n"),
  /** Takes memory until it is killed. */
  hog: "exec tail /dev/zero",
  /** Tries to start $1 sleepers, and prints how many have started. */
  crowd: 'i=0; while [ $i -lt "$1" ]; do sleep 60 >/dev/null 2>&1 </dev/null & i=$((i+1)); echo $i; done',
  /** Spins in two processes until killed. */
  burn: "while :; do :; done & while :; do :; done",
  /** Creates $1 empty files in its folder, or fewer if one cannot be created. */
  "empty-files": 'i=0; while [ $i -lt "$1" ]; do : > "empty-$i" || exit 1; i=$((i+1)); done',
  "write-file": 'head -c "$2" /dev/zero > "$1"',
} as const;

export type ProgramName = keyof typeof scripts;

/** Returns the argv of a named program. */
export function program(name: ProgramName, ...args: string[]): string[] {
  return ["sh", "-c", scripts[name], `caisson:${name}`, ...args];
}
