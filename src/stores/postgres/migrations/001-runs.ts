// Version 1: owners, runs, records and files of runs. `SCHEMA` stands for the schema of the namespace.
//
//   schema/1  No role but the owner of the schema is granted a table. Everything goes through functions that check their caller.
//   schema/2  A record is appended only under the take that its writer got, and only after the record that it names.
//   schema/3  An owner lives while the session that `hello` recorded holds its advisory lock. Another session that holds the
//             lock makes nobody live.
//   schema/4  For 30 s after a restart of the server, when all locks are gone, an owner that has not said hello again counts as
//             living: it may be reconnecting.
//   schema/5  A run belongs to the machine that took it first: another one takes it only if it says that it does without the
//             files.

export const RUNS = `
create table owners (
  id text primary key,
  kind text not null check (kind in ('machine', 'client')),
  role name not null,
  host text not null,
  host_id text not null,
  process int not null,
  -- Differs with every process.
  incarnation text not null,
  backend int not null,
  since timestamptz not null
);

create table runs (
  id text primary key check (id ~ '^[A-Za-z0-9_-]{1,40}$'),
  -- Differs with every run that has this id.
  born bigint not null,
  visible boolean not null,
  program bytea not null,
  head int not null default 0,
  changed_at timestamptz not null,
  -- Whether a worker shall drive it: it has not ended, or shall be resumed.
  waits boolean not null default true,
  -- Who wants it to be stopped, until it has ended.
  stop_by text,
  stop_force boolean not null default false,
  -- The machine that has its files; null if none has.
  home text,
  -- The machine that drove it last.
  driver text,
  take text,
  owner text,
  incarnation text,
  role name,
  since timestamptz
);
create index on runs (changed_at desc);

create table records (
  run text not null references runs on delete cascade,
  seq int not null,
  line bytea not null,
  primary key (run, seq)
);

create table files (
  run text not null references runs on delete cascade,
  path text not null,
  version bigint not null,
  size bigint not null,
  changed bigint not null,
  primary key (run, path)
);

-- Pieces of files. A version that no file has is being written.
create table pieces (
  run text not null references runs on delete cascade,
  version bigint not null,
  start bigint not null,
  bytes bytea not null check (length(bytes) <= 262144),
  written_at timestamptz not null,
  primary key (run, version, start)
);

create sequence numbers;

create function lock_key(owner text) returns bigint language sql immutable as $$
  select hashtextextended('meow/SCHEMA/' || owner, 0)
$$;

-- The session that holds the owner's lock; null if none does.
create function locking_session(wanted text) returns int language sql stable as $$
  select l.pid from pg_locks l
  where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.mode = 'ExclusiveLock'
    and l.database = (select oid from pg_database where datname = current_database())
    and l.classid = ((lock_key(wanted) >> 32) & 4294967295)::oid and l.objid = (lock_key(wanted) & 4294967295)::oid
$$;

create function lives(wanted owners) returns boolean language sql stable as $$
  select coalesce(locking_session(wanted.id) = wanted.backend, false)
    or (wanted.since < pg_postmaster_start_time()
      and pg_postmaster_start_time() > clock_timestamp() - interval '30 s')
$$;

-- The living owner of a run; no row if there is none.
create function holder_of(wanted text) returns setof owners language sql stable as $$
  select o.* from runs r join owners o on o.id = r.owner and o.incarnation = r.incarnation
  where r.id = wanted and r.take is not null and lives(o)
$$;

create function may(role text) returns boolean language sql stable as $$
  select pg_has_role(session_user, 'SCHEMA_' || role, 'member')
$$;

-- Whether the caller may read the run: viewers and operators all, workers what is theirs.
create function may_read(wanted text) returns boolean language sql stable as $$
  select may('viewer') or may('operator') or exists (
    select from runs r left join owners o on o.id = r.home
    where r.id = wanted and (r.role = session_user or o.role = session_user))
$$;

create function version() returns int language sql stable security definer as $$
  select max(number) from migrations
$$;

-- To be called on the session that shall hold the lock. 'ok', or why not: 'held', 'role', 'host'.
create function hello(
  wanted text, wanted_kind text, name text, name_id text, pid int, process_id text,
  out answer text, out by_process int, out by_host text
) language plpgsql security definer as $$
declare known owners;
begin
  select * into known from owners where id = wanted;
  by_process := known.process; by_host := known.host;
  if known.role <> session_user then answer := 'role'; return; end if;
  if known.host_id <> name_id then answer := 'host'; return; end if;
  if locking_session(wanted) is distinct from pg_backend_pid() and not pg_try_advisory_lock(lock_key(wanted)) then
    answer := 'held'; return;
  end if;
  insert into owners values (wanted, wanted_kind, session_user, name, name_id, pid, process_id, pg_backend_pid(), clock_timestamp())
  on conflict (id) do update set host = name, process = pid, incarnation = process_id, backend = pg_backend_pid(),
    since = clock_timestamp();
  answer := 'ok';
end $$;

-- Keeps the session from being silent. Whether it still holds the lock that its owner's hello recorded.
create function beat(wanted text) returns boolean language sql security definer as $$
  select coalesce((select o.backend = pg_backend_pid() and locking_session(o.id) = o.backend from owners o where o.id = wanted), false)
$$;

create function goodbye(wanted text) returns void language plpgsql security definer as $$
begin
  delete from owners o where o.id = wanted and o.kind = 'client' and o.role = session_user and o.backend = pg_backend_pid()
    and not exists (select from runs r where r.owner = o.id and r.take is not null);
  perform pg_advisory_unlock(lock_key(wanted)) where locking_session(wanted) = pg_backend_pid();
end $$;

-- The caller's owner, if it lives.
create function own(wanted text) returns owners language plpgsql stable as $$
declare found_owner owners;
begin
  select * into found_owner from owners where id = wanted and role = session_user;
  if found_owner.id is null or not lives(found_owner) then raise exception 'no living owner %', wanted using errcode = 'MW001'; end if;
  return found_owner;
end $$;

-- 'ok', 'exists' or 'held'.
create function create_run(wanted text, text_of_program bytea, by_owner text, new_take text, is_visible boolean)
returns text language plpgsql security definer as $$
declare me owners := own(by_owner); there runs;
begin
  select * into there from runs where id = wanted for update;
  if found then
    if exists (select from holder_of(wanted)) then return case when there.take = new_take then 'ok' else 'held' end; end if;
    if there.head > 0 then return 'exists'; end if;
    delete from runs where id = wanted;
  end if;
  insert into runs (id, born, visible, program, changed_at, home, driver, take, owner, incarnation, role, since)
  values (wanted, nextval('numbers'), is_visible, text_of_program, clock_timestamp(),
    case when me.kind = 'machine' then me.id end, case when me.kind = 'machine' then me.id end, new_take, me.id, me.incarnation, session_user, clock_timestamp())
  on conflict do nothing;
  return case when found then 'ok' else 'held' end;
end $$;

create function show_run(wanted text, held_take text) returns void language sql security definer as $$
  update runs set visible = true, changed_at = clock_timestamp() where id = wanted and take = held_take and role = session_user
$$;

-- Gives a run to a machine that has not its files. 'ok', 'absent', or 'held' if its owner lives.
create function move_run(wanted text, new_home text) returns text language plpgsql security definer as $$
declare there runs;
begin
  select * into there from runs where id = wanted and visible and (may('operator') or role = session_user) for update;
  if there.id is null then return 'absent'; end if;
  if exists (select from holder_of(wanted)) then return 'held'; end if;
  update runs set home = new_home, waits = true, stop_by = null, stop_force = false where id = wanted;
  return 'ok';
end $$;

-- 'ok', 'absent', 'held', 'empty' or 'elsewhere'. 'at_home' is the machine that the run belongs to, and 'from_machine' the one
-- that drove it last.

create function take_run(wanted text, by_owner text, new_take text, without_files boolean, out answer text, out at_home text,
  out from_machine text)
language plpgsql security definer as $$
declare me owners := own(by_owner); there runs;
begin
  select * into there from runs where id = wanted and visible for update;
  at_home := there.home; from_machine := there.driver;
  if there.id is null then answer := 'absent'; return; end if;
  if there.take = new_take then answer := 'ok'; return; end if;
  if exists (select from holder_of(wanted)) then answer := 'held'; return; end if;
  if there.head = 0 then answer := 'empty'; return; end if;
  if there.home <> me.id and not without_files then answer := 'elsewhere'; return; end if;
  update runs set take = new_take, owner = me.id, incarnation = me.incarnation, role = session_user, since = clock_timestamp(),
    home = case when me.kind = 'machine' then me.id else there.home end,
    driver = case when me.kind = 'machine' then me.id else there.driver end
  where id = wanted;
  answer := 'ok';
end $$;

-- 'ok', also if the same bytes are there already; 'fenced'; 'behind' if records are missing that the writer knows to be stored.
create function append(wanted text, held_take text, after int, lines bytea[]) returns text
language plpgsql security definer as $$
declare count int := cardinality(lines); there runs;
begin
  update runs set head = after + count, changed_at = clock_timestamp()
  where id = wanted and take = held_take and head = after and role = session_user;
  if found then
    insert into records select wanted, after + n, line from unnest(lines) with ordinality as given (line, n);
    return 'ok';
  end if;
  select * into there from runs where id = wanted;
  if there.id is null or there.head < after then return 'behind'; end if;
  if there.take = held_take and there.role = session_user and lines = array(
    select line from records where run = wanted and seq > after and seq <= after + count order by seq
  ) then return 'ok'; end if;
  return 'fenced';
end $$;

-- Removes a run without a record.
create function release(wanted text, held_take text, has_ended boolean) returns void language plpgsql security definer as $$
begin
  delete from runs where id = wanted and take = held_take and head = 0 and role = session_user;
  update runs set take = null, owner = null, incarnation = null, since = null, waits = waits and not has_ended,
    stop_by = case when not has_ended then stop_by end, stop_force = stop_force and not has_ended
  where id = wanted and take = held_take and role = session_user;
end $$;

create function holder(wanted text, out process int, out host text, out since text, out take text)
returns setof record language sql stable security definer as $$
  select o.process, o.host, to_char(r.since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), r.take
  from holder_of(wanted) o join runs r on r.id = wanted where may_read(wanted)
$$;

-- Runs that the owner may drive now, the oldest first: new ones, and its own that nobody drives.
create function waiting_runs(by_owner text) returns table (id text, home text) language sql stable security definer as $$
  select r.id, r.home from runs r join owners me on me.id = by_owner and me.role = session_user
  where r.waits and r.visible and r.head > 0 and (r.home is null or r.home = me.id) and not exists (select from holder_of(r.id))
  order by r.born
$$;

-- Makes a run that has ended wait for a worker. False if there is none, or if it is driven or waits already.
create function make_waiting(wanted text) returns boolean language plpgsql security definer as $$
begin
  update runs set waits = true, stop_by = null, stop_force = false where id = wanted and visible and not waits and (may('operator') or role = session_user)
    and not exists (select from holder_of(wanted));
  return found;
end $$;

-- Asks the owner of a run, or its next one, to stop it. False if it has ended.
create function stop_run(wanted text, by_name text, with_force boolean) returns boolean language plpgsql security definer as $$
begin
  update runs set stop_by = by_name, stop_force = stop_force or with_force
  where id = wanted and visible and waits and (may('operator') or role = session_user);
  return found;
end $$;

-- The runs that the owner drives, or may drive, and shall stop.
create function stops(by_owner text) returns table (id text, by text, force boolean) language sql stable security definer as $$
  select r.id, r.stop_by, r.stop_force from runs r join owners me on me.id = by_owner and me.role = session_user
  where r.stop_by is not null and (r.owner = me.id or r.owner is null)
$$;

create function whereabouts(wanted text, out waits boolean, out home text, out host text, out heard text, out is_driven boolean)
returns setof record language sql stable security definer as $$
  select r.waits, r.home, o.host, to_char(o.since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    exists (select from holder_of(wanted))
  from runs r left join owners o on o.id = r.home where r.id = wanted and may_read(wanted)
$$;

-- Machines, with the number of runs that they drive and of those that wait for them.
create function list_machines()
returns table (id text, host text, process int, since text, lives boolean, driven int, waiting int)
language sql stable security definer as $$
  select o.id, o.host, o.process, to_char(o.since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), lives(o),
    (select count(*) from runs r where r.owner = o.id and r.take is not null and r.incarnation = o.incarnation and lives(o))::int,
    (select count(*) from runs r where r.home = o.id and r.waits and not exists (select from holder_of(r.id)))::int
  from owners o where o.kind = 'machine' order by o.host, o.id
$$;

create function count_waiting() returns int language sql stable security definer as $$
  select count(*)::int from runs r where r.waits and r.visible and r.head > 0 and r.home is null
    and not exists (select from holder_of(r.id))
$$;

create function list_runs(beginning text, at_most int)
returns table (id text, changed_at float8, program bytea, first bytea, last bytea) language sql stable security definer as $$
  select r.id, floor(extract(epoch from r.changed_at) * 1000)::float8, substring(r.program for 8192), substring(f.line for 200), l.line
  from runs r
  left join records f on f.run = r.id and f.seq = 1
  left join records l on l.run = r.id and l.seq = r.head
  where r.visible and starts_with(r.id, beginning) and may_read(r.id)
  order by r.changed_at desc, r.id limit at_most
$$;

create function read_program(wanted text) returns table (born bigint, program bytea, head int) language sql stable security definer as $$
  select born, program, head from runs where id = wanted and visible and may_read(wanted)
$$;

-- At least one record if there is one, and no more than so many bytes otherwise.
create function read_lines(wanted text, from_seq int, bytes_max int)
returns table (born bigint, head int, lines bytea[]) language sql stable security definer as $$
  select r.born, r.head, array(
    select line from (
      select line, seq, sum(length(line)) over (order by seq) as total
      from (select line, seq from records where run = wanted and seq >= from_seq order by seq limit 1000) chosen
    ) counted where total <= bytes_max or seq = from_seq order by seq)
  from runs r where r.id = wanted and r.visible and may_read(wanted)
$$;

-- Whether the caller may write files of the run: its owner by the take, or, if nobody holds it, the role of its machine.
create function writable(wanted text, held_take text) returns boolean language sql as $$
  select exists (
    select from runs r left join owners o on o.id = r.home
    where r.id = wanted and case
      when r.take is null or not exists (select from holder_of(wanted)) then may('operator') or o.role = session_user
      else r.take = held_take and r.role = session_user end
    for share of r)
$$;

-- Adds to a file. 'ok', also if the same bytes are there already; 'moved' if the file does not end at the offset; 'refused'.
create function put(wanted text, held_take text, name text, at bigint, content bytea) returns text
language plpgsql security definer as $$
declare there files;
begin
  if not writable(wanted, held_take) then return 'refused'; end if;
  insert into files values (wanted, name, nextval('numbers'), 0, nextval('numbers')) on conflict do nothing;
  select * into there from files where run = wanted and path = name for update;
  if there.size = at then
    if length(content) > 0 then
      insert into pieces values (wanted, there.version, at, content, clock_timestamp());
    end if;
    update files set size = at + length(content), changed = nextval('numbers') where run = wanted and path = name;
    return 'ok';
  end if;
  if exists (select from pieces p where p.run = wanted and p.version = there.version and p.start = at and p.bytes = content) then
    return 'ok';
  end if;
  return 'moved';
end $$;

create function new_version() returns bigint language sql security definer as $$ select nextval('numbers') $$;

-- Writes a piece of a version that no file has yet.
create function stage(wanted text, held_take text, new_version bigint, at bigint, content bytea) returns text
language plpgsql security definer as $$
begin
  if not writable(wanted, held_take) or exists (select from files where run = wanted and version = new_version) then return 'refused'; end if;
  insert into pieces values (wanted, new_version, at, content, clock_timestamp()) on conflict do nothing;
  return 'ok';
end $$;

-- Gives a file a version that was staged completely: readers find the old content or the new. Also removes what was staged
-- an hour ago and never published.
create function publish(wanted text, held_take text, name text, new_version bigint, new_size bigint) returns text
language plpgsql security definer as $$
declare old_version bigint;
begin
  if not writable(wanted, held_take) then return 'refused'; end if;
  select version into old_version from files where run = wanted and path = name for update;
  if old_version = new_version then return 'ok'; end if;
  if new_size <> (select coalesce(sum(length(bytes)), 0) from pieces where run = wanted and version = new_version) then
    return 'moved';
  end if;
  insert into files values (wanted, name, new_version, new_size, nextval('numbers'))
  on conflict (run, path) do update set version = new_version, size = new_size, changed = nextval('numbers');
  delete from pieces p where p.run = wanted and (p.version = old_version
    or p.written_at < clock_timestamp() - interval '1 hour'
      and not exists (select from files f where f.run = wanted and f.version = p.version));
  return 'ok';
end $$;

-- A file, or a folder with everything in it.
create function remove_files(wanted text, held_take text, name text) returns text language plpgsql security definer as $$
begin
  if not writable(wanted, held_take) then
    return case when exists (select from runs where id = wanted) then 'refused' else 'ok' end;
  end if;
  with removed as (
    delete from files where run = wanted and (path = name or starts_with(path, name || '/') or name = '') returning version
  ) delete from pieces where run = wanted and version in (select version from removed);
  return 'ok';
end $$;

create function list_files(wanted text, folder text) returns table (name text, is_file boolean, size float8)
language sql stable security definer as $$
  select split_part(rest, '/', 1), bool_or(position('/' in rest) = 0), max(case when position('/' in rest) = 0 then size else 0 end)::float8
  from (
    select substring(path from length(folder) + (case folder when '' then 1 else 2 end)) as rest, size from files
    where run = wanted and (folder = '' or starts_with(path, folder || '/')) and may_read(wanted)
  ) below group by split_part(rest, '/', 1) order by split_part(rest, '/', 1) collate "C"
$$;

-- No row if there is no such file. The pieces are those that have some of the bytes, the first one from 'first_at' on.
create function read_file(wanted text, name text, start_at bigint, end_at bigint)
returns table (version text, size float8, first_at float8, parts bytea[]) language sql stable security definer as $$
  select f.version::text, f.size::float8, min(p.start)::float8, coalesce(array_agg(p.bytes order by p.start) filter (where p.start is not null), '{}')
  from files f left join pieces p on p.run = f.run and p.version = f.version
    and p.start < end_at and p.start + length(p.bytes) > start_at
  where f.run = wanted and f.path = name and may_read(wanted)
  group by f.version, f.size
$$;

-- Differs after each change in a folder.
create function files_mark(wanted text, folder text) returns text language sql stable security definer as $$
  select coalesce(max(changed), 0) || ' ' || count(*) from files
  where run = wanted and (folder = '' or starts_with(path, folder || '/')) and may_read(wanted)
$$;
`;
