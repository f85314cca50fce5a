"""What the dashboards show: each panel's metrics, units and meaning."""

from contrib.grafana.dashboards import WIDE, Board, PanelLook

OF = 'job="headway-controller", instance="$controller"'
CONTROLLER = {"controller": 'label_values(headway_plan_epoch{job="headway-controller"}, instance)'}
CLASS = f"on (host, allocation) group_left (class) (0 * headway_planned_bps{{{OF}}} + 1)"

SITE = Board(
    "site",
    "What is not well, what the site sends against its plan, what was asked and answered.",
    CONTROLLER,
    (
        PanelLook("All is well", "1: /healthz is ok.", "none", {"": f"headway_healthy{{{OF}}}"}, bad=1, is_least=True),
        PanelLook(
            *("Plan in force", "1: the plan that is wanted is in the switches.", "none"),
            {"": f"headway_plan_in_force{{{OF}}}"},
            bad=1,
            is_least=True,
        ),
        PanelLook("Troubles", "What /healthz names.", "none", {"": f"sum(headway_troubles{{{OF}}})"}, bad=1),
        PanelLook("Switches gone", "Not connected.", "none", {"": f"sum(1 - headway_switch_connected{{{OF}}})"}, bad=1),
        PanelLook("Agents gone", "Not connected.", "none", {"": f"sum(1 - headway_agent_connected{{{OF}}})"}, bad=1),
        PanelLook("Circuits down", "Or back too lately.", "none", {"": f"sum(1 - headway_circuit_up{{{OF}}})"}, bad=1),
        PanelLook(
            *("Unsaved", "Age of the oldest answer that the database has not confirmed.", "s"),
            {"": f"headway_store_unsaved_seconds{{{OF}}}"},
            bad=2,
        ),
        PanelLook(
            *("Clock off", "The wall clock less the time that promises are kept by.", "s"),
            {"": f"abs(headway_calendar_off_seconds{{{OF}}})"},
            bad=1,
        ),
        PanelLook(
            *("Planned and delivered", "Payload of all allocations. Less is delivered where less is sent.", "bps"),
            {
                "planned": f"sum(headway_planned_bps{{{OF}}})",
                "delivered": f"sum(headway_delivered_bps{{{OF}}})",
            },
        ),
        PanelLook(
            *("Delivered by class", "Payload that receivers have confirmed.", "bps"),
            {"{{class}}": f"sum by (class) (headway_delivered_bps{{{OF}}} * {CLASS})"},
            is_stacked=True,
        ),
        PanelLook(
            *("What is not well", "By its kind; the alert of that name says what to do.", "none"),
            {"{{kind}} {{place}}": f"headway_troubles{{{OF}}} > 0"},
        ),
        PanelLook(
            *("Plan", "Places where a layer lets through more than the next: a defect if not 0.", "none"),
            {"violations": f"headway_invariant_violations{{{OF}}}"},
        ),
        PanelLook(
            *("Promises", "Reservations by state, and announcements in the plan.", "none"),
            {
                "{{state}}": f"headway_reservations{{{OF}}}",
                "announcements": f"headway_announcements{{{OF}}}",
            },
            is_stacked=True,
        ),
        PanelLook(
            *("Promises kept", "Announcements that have ended, a day, by how their promise was kept.", "none"),
            {"{{outcome}}": f"sum by (outcome) (increase(headway_announcements_ended_total{{{OF}}}[1d]))"},
            is_stacked=True,
        ),
        PanelLook(
            *("Promises not kept now", "Announcements that are late, reservations that have no room any more.", "none"),
            {
                "late": f"headway_announcements_late{{{OF}}}",
                "unkeepable": f"headway_reservations_unkeepable{{{OF}}}",
            },
        ),
        PanelLook(
            *("Decisions", "What was asked, by the answer.", "reqps"),
            {"{{kind}} {{answer}}": f"sum by (kind, answer) (rate(headway_decisions_total{{{OF}}}[$__rate_interval]))"},
        ),
        PanelLook(
            *("Deciding takes", "What 99% of decisions take at most, without their way to the disk.", "s"),
            {
                "{{kind}}": "histogram_quantile(0.99, sum by (le, kind)"
                f" (rate(headway_decision_seconds_bucket{{{OF}}}[$__rate_interval])))"
            },
        ),
        PanelLook(
            *("Drift", "What audits have found, and what was put right, an hour.", "none"),
            {
                "found at {{place}}": f"sum by (place) (increase(headway_drift_found_total{{{OF}}}[1h]))",
                "repaired at {{place}}": f"sum by (place) (increase(headway_drift_repaired_total{{{OF}}}[1h]))",
            },
        ),
    ),
)

LINK = f'{OF}, link="$link"'
CIRCUIT = Board(
    "circuit",
    "A direction of a circuit: what each class has of it, and what each layer lets through.",
    CONTROLLER
    | {"link": f"label_values(headway_circuit_wire_bps{{{OF}}}, link)"}
    | {"class": f"label_values(headway_class_wire_bps{{{LINK}}}, class)"},
    (
        PanelLook(
            *("Shares", "Each class's part of the circuit, on the wire, and what the circuit carries.", "bps"),
            {
                "{{class}}": f"headway_class_wire_bps{{{LINK}}}",
                "circuit": f"headway_circuit_wire_bps{{{LINK}}}",
            },
        ),
        PanelLook(
            *("Not planned", "What of the circuit no class has.", "bps"),
            {
                "free": f"headway_circuit_wire_bps{{{LINK}}}"
                f" - on (link) sum by (link) (headway_class_wire_bps{{{LINK}}})"
            },
        ),
        PanelLook(
            *("Layers of $class", "Hosts <= meter <= queue, in bits of frames: so it is in every plan.", "bps"),
            {
                "queue": f'headway_class_queue_frame_bps{{{LINK}, class="$class"}}',
                "meter": f'headway_class_meter_frame_bps{{{LINK}, class="$class"}}',
                "hosts": f'headway_class_hosts_frame_bps{{{LINK}, class="$class"}}',
            },
            columns=WIDE,
        ),
        PanelLook(
            *("Lines of all circuits", "1: up and trusted.", "none"),
            {"{{circuit}}": f"headway_circuit_up{{{OF}}}"},
            columns=WIDE,
        ),
    ),
)

HOST_OF = f'{OF}, host="$host"'
AGENT = 'job="headway-agent", host="$host"'
HOST = Board(
    "host",
    "What a host is to send and sends, what is in its way; below, what its agent says where it is scraped.",
    CONTROLLER | {"host": f"label_values(headway_agent_connected{{{OF}}}, host)"},
    (
        PanelLook(
            *("Agent", "1: connected.", "none"),
            {"": f"headway_agent_connected{{{HOST_OF}}}"},
            bad=1,
            is_least=True,
        ),
        PanelLook(
            *("Lease left", "How long the plan holds without the controller.", "s"),
            {"": f"headway_agent_lease_left_seconds{{{HOST_OF}}}"},
            bad=0.5,
            is_least=True,
        ),
        PanelLook(
            *("Fallen back", "Flows that run the host's own congestion control.", "none"),
            {"": f"sum(headway_agent_fallback{{{HOST_OF}}})"},
            bad=1,
        ),
        PanelLook(
            *("Certificate", "How long it is still good.", "s"),
            {"": f"headway_agent_certificate_ends_seconds{{{HOST_OF}}} - time()"},
            bad=30 * 86_400,
            is_least=True,
        ),
        PanelLook(
            *("Planned", "Payload that the plan has for each allocation.", "bps"),
            {"{{allocation}}": f"headway_planned_bps{{{HOST_OF}}}"},
            is_stacked=True,
        ),
        PanelLook(
            *("Delivered", "Payload that receivers have confirmed.", "bps"),
            {"{{allocation}}": f"headway_delivered_bps{{{HOST_OF}}}"},
            is_stacked=True,
        ),
        PanelLook(
            *("Sent again", "Share of segments.", "percentunit"),
            {
                "{{allocation}}": f"rate(headway_retransmitted_segments_total{{{HOST_OF}}}[$__rate_interval])"
                f" / rate(headway_sent_segments_total{{{HOST_OF}}}[$__rate_interval])"
            },
        ),
        PanelLook("Round trip", "Smoothed.", "s", {"{{allocation}}": f"headway_rtt_seconds{{{HOST_OF}}}"}),
        PanelLook(
            *("In the way", "Of more than is delivered.", "none"),
            {"{{allocation}}: {{hindrance}}": f"headway_hindrance{{{HOST_OF}}}"},
        ),
        PanelLook(
            *("Stores drain", "What is taken for good of what this host receives; nothing where that is all.", "bps"),
            {"{{store}}": f"headway_store_drain_bps{{{HOST_OF}}}"},
        ),
        PanelLook(
            *("Stores' room", "What they can take at once, and what waits unread in their sockets.", "bytes"),
            {
                "{{store}} room": f"headway_store_room_bytes{{{HOST_OF}}}",
                "{{store}} unread": f"headway_store_unread_bytes{{{HOST_OF}}}",
            },
        ),
        PanelLook(
            *("Connections", "Open, and those that share the rate.", "none"),
            {
                "{{entry}} open": f"headway_agent_connections{{{AGENT}}}",
                "{{entry}} active": f"headway_agent_active_connections{{{AGENT}}}",
            },
        ),
        PanelLook(
            *("Windows", "Memory that they may take at most.", "bytes"),
            {"windows": f"headway_agent_buffers_may_take_bytes{{{AGENT}}}"},
        ),
        PanelLook(
            *("Put right in the kernel", "Parts of the plan that were not there as they should have been.", "none"),
            {"repairs": f"increase(headway_agent_repairs_total{{{AGENT}}}[1h])"},
        ),
    ),
)

BOARDS = (SITE, CIRCUIT, HOST)
