//! Running ops, their arguments first.

use remat_plan::{OpId, StorageId, TensorId};

use super::{Frame, Runtime, Stop};

impl Runtime<'_> {
    /// Brings a tensor back if it is not defined.
    pub(super) fn materialize(&mut self, tensor: TensorId) -> Result<(), Stop> {
        if self.defined[tensor] {
            return Ok(());
        }
        self.run(self.trace.tensors[tensor].producer)
    }

    /// Runs an op, and before it whatever its missing arguments need. Chains may be long, so the stack is explicit.
    pub(super) fn run(&mut self, op: OpId) -> Result<(), Stop> {
        self.begin(op);
        while let Some(&Frame { op, next, start }) = self.frames.last() {
            let Some(&tensor) = self.missing.get(next) else {
                self.frames.pop();
                self.missing.truncate(start);
                self.finish(op)?;
                continue;
            };
            if self.defined[tensor] {
                self.lock(self.trace.tensors[tensor].storage);
                if let Some(frame) = self.frames.last_mut() {
                    frame.next += 1;
                }
            } else {
                self.begin(self.trace.tensors[tensor].producer);
            }
        }
        Ok(())
    }

    /// Locks the arguments that are there and notes those that are not.
    fn begin(&mut self, op: OpId) {
        let trace = self.trace;
        let arguments = &trace.ops[op].arguments;
        for &argument in arguments {
            self.last_access[trace.tensors[argument].storage] = self.clock;
        }
        let start = self.missing.len();
        for &argument in arguments {
            if self.defined[argument] {
                self.lock(trace.tensors[argument].storage);
            } else {
                self.missing.push(argument);
            }
        }
        self.frames.push(Frame { op, next: start, start });
    }

    /// Runs an op whose arguments are locked.
    fn finish(&mut self, op: OpId) -> Result<(), Stop> {
        let trace = self.trace;
        let entry = &trace.ops[op];
        self.make_room(entry.bytes + entry.workspace)?;
        self.clock = self.clock.saturating_add(entry.duration);
        self.peak = self.peak.max(self.usage + entry.bytes + entry.workspace);
        let again = self.runs[op] > 0;
        self.runs[op] += 1;
        self.run_count += 1;
        self.sequence.push(op);
        let mut returned: Vec<StorageId> = Vec::new();
        for &result in &entry.results {
            let storage = trace.tensors[result].storage;
            let creates = trace.storages[storage].root == result;
            // A second instance of what is there already lives during the run only.
            if std::mem::replace(&mut self.defined[result], true) || !creates {
                continue;
            }
            self.usage += trace.storages[storage].bytes;
            self.material[storage] = true;
            self.costs.returned(storage);
            if trace.storages[storage].stays {
                self.pin(storage);
            }
            returned.push(storage);
        }
        if self.runs[op] >= entry.most_runs {
            for &result in &entry.results {
                self.pin_until_expired(trace.tensors[result].storage);
            }
        }
        for &storage in &returned {
            if self.locks[storage] == 0 {
                self.pool.insert(storage);
            }
        }
        for &argument in &entry.arguments {
            self.unlock(trace.tensors[argument].storage);
        }
        if again {
            self.recomputes += 1;
            self.recompute_ns = self.recompute_ns.saturating_add(entry.duration);
            self.banish_parents(&returned);
        }
        self.check_limits()
    }
}
