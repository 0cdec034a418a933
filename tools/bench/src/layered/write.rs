//! A layered graph as networkx node-link JSON.

use std::io::{self, Write};

use serde_json::json;

use super::LayeredGraph;

impl LayeredGraph {
    /// Writes the keys that the published graphs have, one node and one edge a line.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let header = json!({ "name": self.name, "order": self.order });
        write!(
            out,
            "{{\"directed\": true, \"multigraph\": false, \"graph\": {header},\n\"nodes\": ["
        )?;
        let levels = self.levels.iter().enumerate();
        let nodes = levels.flat_map(|(level, nodes)| nodes.clone().map(move |node| (node, level)));
        let mut separator = "\n";
        for (node, level) in nodes {
            let (size, duration) = (self.sizes[node], self.durations[node]);
            write!(
                out,
                "{separator}{{\"id\": {node}, \"out_cost\": {size}, \"duration\": {duration}, \"level\": {level}}}"
            )?;
            separator = ",\n";
        }
        write!(out, "],\n\"links\": [")?;
        separator = "\n";
        for (target, sources) in self.reads.iter().enumerate() {
            for source in sources {
                write!(out, "{separator}{{\"source\": {source}, \"target\": {target}}}")?;
                separator = ",\n";
            }
        }
        writeln!(out, "]}}")
    }
}
