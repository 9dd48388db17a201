#!/bin/sh
#
# Job bare, made by skeletonkey dev it's.
#
# It needs sh and one of curl, wget and python3. It fetches the skeletonkey program into a private
# cache, checks it, and hands over to it; that unpacks the application, mounts the data, runs the
# application and cleans up. Try: sh job.sh --help
#
# Every variable here begins with sk_, so that none of the application's is changed.

set -fu
unset IFS
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
export PATH

# What is closed is opened: nothing else may come by its number. The application gets it so too.
(true 3>&2) || exec 2>/dev/null
(true 3>&1) 2>/dev/null || exec >/dev/null
(true 3<&0) 2>/dev/null || exec </dev/null

sk_base=http://data.example.org:9095/dist
sk_host=data.example.org:9095       # of sk_base, as no_proxy may name it
sk_proxy_ini=''
sk_child=                 # process that is waited for
sk_guard=                 # process that watches over it
sk_temp=                  # file that is being fetched
sk_lock=                  # lock that is held
sk_debug=
sk_patience=60            # seconds for which a fetch may stand still
sk_pauses='1 3 0'         # seconds between rounds of the fetch; 0 is the last

sk_say() { printf 'skeletonkey: %s\n' "$*" >&2; }
sk_note() { [ -z "$sk_debug" ] || sk_say "$@"; }

sk_usage() {
	cat <<'SKELETONKEY_USAGE'
Usage: job.sh [-d] [--preserve-dir] [--] [ARGUMENT...]

Runs one job, "bare", on this machine. Its application gets the arguments of the job file, then these.

  -d, --debug      say what is done
  --preserve-dir   keep the scratch directory
  -h, --help       this text
  --version        version of skeletonkey that made this script

The runtime is kept in $SKELETONKEY_CACHE, $XDG_CACHE_HOME/skeletonkey or ~/.cache/skeletonkey.
Exit code: 0, 1 or any other of the application's own. Ours are, with * where another try, or
another node, may succeed:
  64  bad usage or job          73  no scratch or cache directory *
  65  bad or missing download   74  data not written back *
  69  server unreachable *      75  temporary failure *
  70  internal error            77  ticket refused or expired
  71  not on this machine *     126  application cannot be executed, 127 is not there
  128 and n  ended by signal n
Example: sh job.sh --debug -- --from 1900
SKELETONKEY_USAGE
}

# --- ends ---

# sk_unguard calls off sk_watch, whose process is gone: should TERM get lost it ends by itself.
sk_unguard() {
	[ -n "$sk_guard" ] || return 0
	kill "$sk_guard" 2>/dev/null
	wait "$sk_guard" 2>/dev/null
	sk_guard=
}

# sk_drop ends what runs and removes what is unfinished.
sk_drop() {
	[ "$sk_child" != new ] || sk_child=${!:-}
	if [ -n "$sk_child" ]; then
		kill -9 "$sk_child" 2>/dev/null # a shell that is just starting it may lose any other signal
		wait "$sk_child" 2>/dev/null
	fi
	sk_child=
	sk_unguard
	[ -z "$sk_temp" ] || rm -f "$sk_temp"
	[ -z "$sk_lock" ] || rm -f "$sk_lock"
	sk_temp='' sk_lock=''
}

# sk_signal ends this script as signal $1 does.
sk_signal() {
	trap '' HUP INT USR1 USR2 TERM
	sk_drop
	sk_say "ended by signal $1 before the application was started"
	exit $((128 + $1))
}
trap 'sk_signal 1' HUP
trap 'sk_signal 2' INT
trap 'sk_signal 10' USR1
trap 'sk_signal 12' USR2
trap 'sk_signal 15' TERM

# sk_fail CODE MESSAGE
sk_fail() {
	sk_code=$1
	shift
	sk_drop
	sk_say "$@"
	exit "$sk_code"
}

# sk_wait waits for the last background process in a way that a signal interrupts.
sk_wait() {
	wait "$sk_child" 2>/dev/null
	sk_status=$?
	sk_child=
	return "$sk_status"
}

sk_sleep() {
	sk_child=new
	sleep "$1" >/dev/null 2>&1 &
	sk_child=$!
	sk_wait
}

# --- files that nobody else can change ---

# sk_mode prints type, permissions and owner of $1 itself, not of what a link leads to.
sk_mode() (
	# shellcheck disable=SC2012,SC2046 # the first words are without blanks; stat is not in POSIX
	set -- $(ls -ldn "$1" 2>/dev/null) - - -
	printf '%s %s\n' "$1" "$3"
)

# sk_own_dir makes directory $1 if need be; it must be a directory, ours, and writable by us alone.
sk_own_dir() {
	[ -d "$1" ] || mkdir -m 700 "$1" 2>/dev/null
	case $(sk_mode "$1") in
	d????-??-*" $sk_uid") return 0 ;;
	esac
	sk_note "$1 is not a directory that only we can write"
	return 1
}

# sk_own_place is sk_own_dir for $1/runtime, with $1 made too, in a place where others can not swap it.
sk_own_place() {
	case $1 in
	/*) ;;
	*)
		sk_note "$1 is not absolute"
		return 1
		;;
	esac
	case $(sk_mode "${1%/*}/.") in
	d???????w[!tT]*)
		sk_note "anybody can change ${1%/*}"
		return 1
		;;
	d*) ;;
	*) return 1 ;;
	esac
	sk_own_dir "$1" && sk_own_dir "$1/runtime" && sk_executes "$1/runtime"
}

# sk_executes tests that files can be made in directory $1, and run.
sk_executes() {
	sk_temp=$1/.test.$sk_me
	if (umask 077 && printf '#!/bin/sh\n' >"$sk_temp" && chmod 700 "$sk_temp") 2>/dev/null; then
		"$sk_temp" </dev/null >/dev/null 2>&1
	else
		false
	fi
	sk_status=$?
	rm -f "$sk_temp"
	sk_temp=
	[ "$sk_status" = 0 ] || sk_note "$1 cannot be written, or programs cannot be run in it"
	return "$sk_status"
}

# sk_sha256 prints the checksum of its standard input, and perhaps more after it.
sk_sha256() {
	if command -v sha256sum >/dev/null; then
		sha256sum
	elif command -v shasum >/dev/null; then
		shasum -a 256
	elif command -v openssl >/dev/null; then
		openssl dgst -sha256 -r
	else
		python3 -I -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
	fi
}

# sk_genuine tests that file $1 is ours, no link, and the very program that this job was made with.
sk_genuine() {
	case $(sk_mode "$1") in
	-??x?-??-*" $sk_uid") ;;
	*) return 1 ;;
	esac
	case $(sk_sha256 <"$1") in
	"$sk_sum"*) return 0 ;;
	esac
	return 1
}

# --- the fetch ---

# sk_bypassed tests whether no_proxy names the host.
sk_bypassed() (
	IFS=', '
	for sk_entry in ${no_proxy:-${NO_PROXY:-}}; do
		[ "$sk_entry" != '*' ] || exit 0
		sk_entry=${sk_entry#\*}
		sk_entry=${sk_entry#.}
		case $sk_host in
		"$sk_entry" | "$sk_entry":* | *."$sk_entry" | *."$sk_entry":*) exit 0 ;;
		esac
	done
	exit 1
)

# sk_proxies finds the proxies to try: of the site, of the job file, of the environment.
sk_proxies() {
	sk_proxy_osg=${OSG_SQUID_LOCATION:-}
	[ "$sk_proxy_osg" != UNAVAILABLE ] || sk_proxy_osg=
	case $sk_base in
	https:*) sk_proxy_env=${https_proxy:-${HTTPS_PROXY:-${all_proxy:-${ALL_PROXY:-}}}} ;;
	*) sk_proxy_env=${http_proxy:-${HTTP_PROXY:-${all_proxy:-${ALL_PROXY:-}}}} ;;
	esac
	if sk_bypassed; then
		sk_proxy_osg='' sk_proxy_ini='' sk_proxy_env=''
	fi
}

# sk_tools finds what fetches, and that there is something that checks.
sk_tools() {
	case $(sk_sha256 </dev/null 2>/dev/null) in
	e3b0c44298fc1c149afbf4c8996fb924*) ;;
	*) sk_fail 71 "none of sha256sum, shasum, openssl and python3 works here: nothing can be checked" ;;
	esac
	case $sk_base in
	/* | file:*) sk_tool="cp" && return ;;
	esac
	if curl --version >/dev/null 2>&1; then
		sk_tool=curl
	elif wget --version >/dev/null 2>&1; then
		sk_tool=wget
	elif command -v wget >/dev/null; then
		sk_tool=small-wget
	elif command -v python3 >/dev/null; then
		sk_tool=python3
	else
		sk_fail 71 "none of curl, wget and python3 is here: $sk_base cannot be fetched"
	fi
}

# sk_get fetches $1 into $2 through proxy $3, in the place of the (sub)shell that calls it. HOME is
# turned away so that no start-up file interferes and wget leaves no .wget-hsts behind.
sk_get() {
	unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
	HOME=/nonexistent
	umask 077
	if [ "$3" != direct ]; then
		http_proxy=$3 https_proxy=$3
		export http_proxy https_proxy
	fi
	case $sk_tool in
	cp) exec cp "${1#file://}" "$2" ;;
	curl) exec curl -q -fsSL --connect-timeout 20 -o "$2" "$1" ;;
	wget) exec wget -q -t 1 -O "$2" "$1" ;;
	small-wget) exec wget -q -O "$2" "$1" ;; # with -T some of them crash
	esac
	exec python3 -I -c 'import shutil, sys, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1]) as r, open(sys.argv[2], "wb") as f:
        shutil.copyfileobj(r, f, 1 << 20)
except OSError as e:
    sys.exit("python3: %s" % e)' "$1" "$2"
}

# sk_watch ends process $1 when its file has not grown for a minute, and when this script was killed
# outright; then it removes what is unfinished too.
sk_watch() {
	sk_nap='' sk_before='' sk_still=0
	trap 'kill $sk_nap; exit 0' TERM
	while kill -0 "$1"; do
		if ! kill -0 "$$"; then
			kill -9 "$1"
			rm -f "$sk_temp" "$sk_lock"
			exit 0
		fi
		sk_got=$(wc -c <"$sk_temp")
		sk_still=$((sk_still + 1))
		[ "$sk_got" = "$sk_before" ] || sk_still=0
		[ "$sk_still" -lt "$sk_patience" ] || kill -9 "$1"
		sk_before=$sk_got
		sleep 1 &
		sk_nap=$!
		wait "$sk_nap"
	done
}

# sk_try fetches once, through proxy $1. 0: there and genuine.
sk_try() {
	sk_via="$sk_tool, proxy: ${1##*@}"
	sk_note "fetching $sk_base/$sk_file ($sk_via)"
	sk_child=new
	sk_get "$sk_base/$sk_file" "$sk_temp" "$1" </dev/null &
	sk_child=$!
	sk_watch "$sk_child" </dev/null >/dev/null 2>&1 &
	sk_guard=$!
	sk_wait
	sk_unguard
	sk_code=69
	sk_why="$sk_base/$sk_file cannot be fetched ($sk_via, exit code $sk_status)"
	if [ "$sk_status" != 0 ]; then
		# A disk that is full looks like anything to some of the tools.
		if [ -e "$sk_temp" ] && ! printf '%65536s' x 2>/dev/null >>"$sk_temp"; then
			sk_code=73 sk_why="no space for the runtime in ${sk_temp%/*}"
		fi
		return 1
	fi
	sk_got=$(wc -c <"$sk_temp")
	if [ "$((sk_got))" -lt "$sk_size" ]; then
		sk_why="$sk_base/$sk_file was cut short: $((sk_got)) of $sk_size bytes ($sk_via)"
		return 1
	fi
	chmod 700 "$sk_temp"
	sk_genuine "$sk_temp" && return 0
	sk_code=65
	sk_why="$sk_base/$sk_file is not the program that this job was made with ($sk_via); generate the job again"
	return 1
}

# sk_fetch brings the runtime as file $1: three rounds over all proxies, the last of each without one.
# On failure sk_code and sk_why say what came of the last try.
sk_fetch() {
	sk_temp=$1.$sk_me
	for sk_pause in $sk_pauses; do
		for sk_proxy in "$sk_proxy_osg" "$sk_proxy_ini" "$sk_proxy_env" direct; do
			[ -n "$sk_proxy" ] || continue
			case $sk_proxy in
			direct | *://*) ;;
			*) sk_proxy=http://$sk_proxy ;;
			esac
			if sk_try "$sk_proxy"; then
				mv -f "$sk_temp" "$1" || sk_fail 73 "$1 cannot be written"
				sk_temp=
				return 0
			fi
			rm -f "$sk_temp"
			[ "$sk_code" != 73 ] || break 2
		done
		[ "$sk_pause" = 0 ] || { sk_note "$sk_why; trying again" && sk_sleep "$sk_pause"; }
	done
	sk_temp=
	return 1
}

# sk_alive tests whether the process that made a file named ...HOST.PID may still be at work.
sk_alive() {
	case $1 in
	*".$sk_node."*) kill -0 "${1##*.}" 2>/dev/null ;;
	esac
}

# sk_sweep removes what jobs that were killed left in directory $1.
sk_sweep() (
	set +f
	for sk_old in "$1"/skeletonkey-*."$sk_node".* "$1"/.test."$sk_node".*; do
		sk_alive "$sk_old" || rm -f "$sk_old"
	done
)

# sk_fetch_once is sk_fetch, except that of several jobs that start together one fetches for all. The
# lock saves work only: without it each would fetch a file of its own and move it into place.
sk_fetch_once() {
	sk_turns=0
	until ln -s "lock.$sk_me" "$1.lock" 2>/dev/null; do
		sk_turns=$((sk_turns + 1))
		sk_holder=$(readlink "$1.lock")
		if [ -n "$sk_holder" ] && ! sk_alive "$sk_holder"; then
			rm -f "$1.lock"
		elif [ "$sk_turns" -gt 120 ]; then
			break
		else
			[ "$sk_turns" != 1 ] || sk_note "another job fetches the runtime"
			sk_sleep 1
			[ ! -e "$1" ] || ! sk_genuine "$1" || return 0
		fi
	done
	sk_lock=$1.lock
	sk_sweep "${1%/*}"
	sk_genuine "$1" || sk_fetch "$1"
	sk_status=$?
	rm -f "$sk_lock"
	sk_lock=
	return "$sk_status"
}

# sk_runtime_in finds the runtime in cache $1, or brings it there, and sets sk_runtime.
sk_runtime_in() {
	sk_own_place "$1" || return 1
	sk_runtime=$1/runtime/skeletonkey-$sk_sum
	sk_genuine "$sk_runtime" && return 0
	sk_fetch_once "$sk_runtime" && return 0
	[ "$sk_code" = 73 ] || sk_fail "$sk_code" "$sk_why"
	sk_note "$sk_why"
	return 1
}

# sk_find_runtime tries the user's cache, then the scratch directories.
sk_find_runtime() {
	if [ -n "${SKELETONKEY_CACHE:-}" ]; then
		sk_cache=$SKELETONKEY_CACHE
	elif [ -n "${XDG_CACHE_HOME:-}" ]; then
		sk_cache=$XDG_CACHE_HOME/skeletonkey
	elif [ -d "${HOME:-}" ]; then
		sk_cache=$HOME/.cache/skeletonkey
	else
		sk_cache=
	fi
	sk_cache=${sk_cache%/}
	if [ -n "$sk_cache" ]; then
		[ -d "${sk_cache%/*}" ] || (umask 077 && mkdir -p "${sk_cache%/*}") 2>/dev/null
		sk_runtime_in "$sk_cache" && return
	fi
	for sk_scratch in "${_CONDOR_SCRATCH_DIR:-}" "${OSG_WN_TMP:-}" "${TMPDIR:-}" /tmp; do
		[ -d "$sk_scratch" ] || continue
		sk_runtime_in "${sk_scratch%/}/skeletonkey-$sk_uid" && return
	done
	sk_fail 73 "no place for the runtime: neither $sk_cache nor a scratch directory can be written and run programs;" \
		"set SKELETONKEY_CACHE or TMPDIR to one that can"
}

# --- the job ---

sk_keep=
while [ $# -gt 0 ]; do
	case $1 in
	-d | --debug) sk_debug=1 ;;
	--preserve-dir) sk_keep=1 ;;
	-h | --help) sk_usage && exit 0 ;;
	--version) printf 'skeletonkey %s\n' "dev it's" && exit 0 ;;
	--) shift && break ;;
	*) break ;;
	esac
	shift
done

sk_uid=$(id -u)
sk_node=$(uname -n)
sk_me=$sk_node.$$
case $(uname -s)-$(uname -m) in
Linux-x86_64 | Linux-amd64) sk_file=skeletonkey-linux-amd64 sk_size=11000000 sk_sum=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ;;
Linux-aarch64 | Linux-arm64) sk_file=skeletonkey-linux-arm64 sk_size=10500000 sk_sum=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb ;;
*) sk_fail 71 "this job has no runtime for $(uname -s) on $(uname -m), only for Linux on x86_64 and aarch64" ;;
esac
sk_proxies
sk_tools
sk_find_runtime
sk_note "runtime: $sk_runtime"

set -- --job-fd 3 -- ${1+"$@"}
[ -z "$sk_keep" ] || set -- --preserve-dir "$@"
[ -z "$sk_debug" ] || set -- --debug "$@"
exec "$sk_runtime" run "$@" 3<<'SKELETONKEY_JOB'
{
  "version": 1,
  "name": "bare",
  "application": {
    "script": "hostname"
  },
  "runtime": {
    "location": "http://data.example.org:9095/dist",
    "sums": [
      {
        "arch": "amd64",
        "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "size": 11000000
      },
      {
        "arch": "arm64",
        "sha256": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "size": 10500000
      }
    ]
  },
  "ticket": {
    "seconds": 86400
  }
}
SKELETONKEY_JOB
