//! Findings as SARIF 2.1.0, for code scanning: a database has no files, so places are logical ones.

use serde_json::{Value, json};

use super::findings::{Finding, RULES};

/// Returns the document.
pub(crate) fn document(findings: &[Finding]) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.summary },
                "defaultConfiguration": { "level": rule.severity.name() },
            })
        })
        .collect();
    let results: Vec<Value> = findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "ordid doctor",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                },
            },
            "results": results,
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let index = RULES.iter().position(|rule| *rule == finding.rule);
    let index = index
        .and_then(|index| i64::try_from(index).ok())
        .unwrap_or(-1);
    // This identifies the same problem in the next run, whatever its figures are.
    let place = place(finding);
    json!({
        "ruleId": finding.rule.id,
        "ruleIndex": index,
        "level": finding.severity.name(),
        "message": { "text": finding.message },
        "locations": [{ "logicalLocations": [{
            "name": finding.column.as_deref().or(finding.table.as_ref().map(|table| &*table.name)).unwrap_or("database"),
            "fullyQualifiedName": place,
            "kind": match (&finding.table, &finding.column) {
                (_, Some(_)) => "column",
                (Some(_), None) => "table",
                (None, None) => "database",
            },
        }] }],
        "partialFingerprints": { "ordidPlace/v1": format!("{}:{place}", finding.rule.id) },
        "properties": {
            "evidence": finding.evidence,
            "cost": finding.cost,
            "fix": finding.fix,
        },
    })
}

/// Returns the whole name of what a finding is about.
pub(crate) fn place(finding: &Finding) -> String {
    match (&finding.table, &finding.column) {
        (Some(table), Some(column)) => format!("{table}.{column}"),
        (Some(table), None) => table.to_string(),
        _ => "database".to_owned(),
    }
}
